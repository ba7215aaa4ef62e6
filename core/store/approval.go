package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
)

// maxApprovals is how many approvals are listed.
const maxApprovals = 500

// approvalRecord is what of an approval is not looked up by.
type approvalRecord struct {
	Caller    core.User       `json:"caller"`
	Key       string          `json:"key,omitempty"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

const selectApprovals = `SELECT id, workspace, fingerprint, record, state, created_at, expires_at, decided_by FROM approvals`

// RequestApproval stores a request for an approval, unless the same call waits already: that request is
// returned then. core.CodeRateLimited when the caller has as many pending ones as most.
func (s *Store) RequestApproval(ctx context.Context, a core.Approval, most int) (stored core.Approval, first bool, err error) {
	err = s.db.Update(ctx, "requesting an approval", func(ctx context.Context, tx *sql.Tx) error {
		first = false
		now := time.Now()
		if _, err := tx.ExecContext(ctx, `UPDATE approvals SET state = 'expired' WHERE state IN ('pending', 'approved') AND expires_at <= $1`, database.Millis(now)); err != nil {
			return err
		}
		stored, err = approvalIn(tx.QueryRowContext(ctx, selectApprovals+` WHERE workspace = $1 AND fingerprint = $2 AND state = 'pending'`, a.Workspace, a.Fingerprint))
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		var pending int
		if err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM approvals WHERE caller = $1 AND state = 'pending'`, a.Caller.ID).Scan(&pending); err != nil {
			return err
		}
		if pending >= most {
			return core.Errorf(core.CodeRateLimited, "%d of your calls wait for an approval already", pending).WithRetryAfter(time.Minute)
		}
		record, err := json.Marshal(approvalRecord{Caller: a.Caller, Key: a.Key, Tool: a.Tool, Arguments: a.Arguments})
		if err != nil {
			return err
		}
		result, err := tx.ExecContext(ctx, `
			INSERT INTO approvals (id, workspace, caller, fingerprint, record, state, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, 'pending', $6, $7)
			ON CONFLICT (workspace, fingerprint) WHERE state = 'pending' DO NOTHING`,
			a.ID, a.Workspace, a.Caller.ID, a.Fingerprint, string(record), database.Millis(a.CreatedAt), database.Millis(a.ExpiresAt))
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		if err != nil {
			return err
		}
		first = n > 0
		stored, err = approvalIn(tx.QueryRowContext(ctx, selectApprovals+` WHERE workspace = $1 AND fingerprint = $2 AND state = 'pending'`, a.Workspace, a.Fingerprint))
		return err
	})
	return stored, first, err
}

// TakeApproval uses the approval of a call. It reports whether there was one: of several calls that are
// made at the same time one gets it.
func (s *Store) TakeApproval(ctx context.Context, workspace, fingerprint string) (taken bool, err error) {
	err = s.db.Update(ctx, "using an approval", func(ctx context.Context, tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, `
			UPDATE approvals SET state = 'used' WHERE state = 'approved' AND id = (
				SELECT id FROM approvals WHERE workspace = $1 AND fingerprint = $2 AND state = 'approved' AND expires_at > $3 ORDER BY created_at, id LIMIT 1)`,
			workspace, fingerprint, database.Millis(time.Now()))
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		taken = n > 0
		return err
	})
	return taken, err
}

// DecideApproval approves or refuses a call that waits: core.CodeNotFound when the workspace has no such
// request, core.CodeAlreadyAnswered when it does not wait any more.
func (s *Store) DecideApproval(ctx context.Context, workspace, id, by string, state core.ApprovalState) error {
	return s.db.Update(ctx, "deciding on a call", func(ctx context.Context, tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, `
			UPDATE approvals SET state = $1, decided_by = $2 WHERE workspace = $3 AND id = $4 AND state = 'pending' AND expires_at > $5`,
			string(state), by, workspace, id, database.Millis(time.Now()))
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil {
			return err
		} else if n > 0 {
			return s.notifyPeers(ctx, tx, core.ChangeApproval, workspace, id)
		}
		var n int
		if err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM approvals WHERE workspace = $1 AND id = $2`, workspace, id).Scan(&n); err != nil {
			return err
		}
		if n == 0 {
			return core.Errorf(core.CodeNotFound, "no call %.100q waits for an approval", id)
		}
		return core.Errorf(core.CodeAlreadyAnswered, "the call does not wait any more: it was decided on, or it has expired")
	})
}

// Approval returns one approval of a workspace; core.CodeNotFound when there is none.
func (s *Store) Approval(ctx context.Context, workspace, id string) (a core.Approval, err error) {
	err = s.db.Read(ctx, func(ctx context.Context, q database.Querier) error {
		a, err = approvalIn(q.QueryRowContext(ctx, selectApprovals+` WHERE workspace = $1 AND id = $2`, workspace, id))
		return err
	})
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return a, core.Errorf(core.CodeNotFound, "no call %.100q waits for an approval", id)
	case err != nil:
		return a, fmt.Errorf("reading an approval: %w", err)
	}
	return a, nil
}

// Approvals returns the approvals of a workspace, the newest first: those of one caller, "" for all.
func (s *Store) Approvals(ctx context.Context, workspace, caller string) (all []core.Approval, err error) {
	err = s.db.Select(ctx, selectApprovals+` WHERE workspace = $1 AND ($2 = '' OR caller = $2) ORDER BY created_at DESC, id LIMIT $3`,
		[]any{workspace, caller, maxApprovals}, func(scan func(...any) error) error {
			a, err := approvalIn(scanner(scan))
			all = append(all, a)
			return err
		})
	if err != nil {
		return nil, fmt.Errorf("reading the approvals: %w", err)
	}
	return all, nil
}

// scanner is a row that is read by Scan.
type scanner func(...any) error

// Scan reads the row.
func (s scanner) Scan(into ...any) error { return s(into...) }

func approvalIn(row interface{ Scan(into ...any) error }) (a core.Approval, err error) {
	var record string
	var created, expires int64
	if err := row.Scan(&a.ID, &a.Workspace, &a.Fingerprint, &record, &a.State, &created, &expires, &a.DecidedBy); err != nil {
		return a, err
	}
	var r approvalRecord
	if err := json.Unmarshal([]byte(record), &r); err != nil {
		return a, err
	}
	a.Caller, a.Key, a.Tool, a.Arguments = r.Caller, r.Key, r.Tool, r.Arguments
	a.CreatedAt, a.ExpiresAt = database.FromMillis(created), database.FromMillis(expires)
	if !a.ExpiresAt.After(time.Now()) && (a.State == core.ApprovalPending || a.State == core.ApprovalApproved) {
		a.State = core.ApprovalExpired
	}
	return a, nil
}
