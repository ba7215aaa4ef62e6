package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
)

// maxApprovals is the maximum number of approvals on a page.
const maxApprovals = 500

// approvalRecord contains the fields of an approval that no query selects by.
type approvalRecord struct {
	Caller    core.User       `json:"caller"`
	Key       string          `json:"key,omitempty"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`

	Account     string `json:"account,omitempty"`
	Definition  string `json:"definition,omitempty"`
	Destructive bool   `json:"destructive,omitempty"`
}

// decisionRecord records who decided on an approval, and why.
type decisionRecord struct {
	By     core.User `json:"by"`
	Reason string    `json:"reason,omitempty"`
	Always bool      `json:"always,omitempty"`
}

const (
	approvalColumns = `id, workspace, fingerprint, record, state, created_at, expires_at, decided_by, decision, decided_at`
	selectApprovals = `SELECT ` + approvalColumns + ` FROM approvals`
)

// RequestApproval stores a request for an approval. If the same call is already waiting, it returns that request
// instead, which may have expired (see ExpireApprovals), and first is false. The error is core.CodeRateLimited if the
// caller already has limit pending requests.
func (s *Store) RequestApproval(ctx context.Context, a core.Approval, limit int) (stored core.Approval, first bool, err error) {
	err = s.db.Update(ctx, "requesting an approval", func(ctx context.Context, tx *sql.Tx) error {
		first = false
		stored, err = approvalIn(tx.QueryRowContext(ctx, selectApprovals+` WHERE workspace = $1 AND fingerprint = $2 AND state = 'pending'`, a.Workspace, a.Fingerprint))
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		var pending int
		if err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM approvals WHERE caller = $1 AND state = 'pending'`, a.Caller.ID).Scan(&pending); err != nil {
			return err
		}
		if pending >= limit {
			return core.Errorf(core.CodeRateLimited, "%d of your calls are already waiting for an approval", pending).WithRetryAfter(time.Minute)
		}
		record, err := json.Marshal(approvalRecord{Caller: a.Caller, Key: a.Key, Tool: a.Tool, Arguments: a.Arguments, Definition: a.Definition, Destructive: a.Destructive, Account: a.Account})
		if err != nil {
			return err
		}
		if first, err = database.Changed(ctx, tx, `
			INSERT INTO approvals (id, workspace, caller, fingerprint, record, state, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, 'pending', $6, $7)
			ON CONFLICT (workspace, fingerprint) WHERE state = 'pending' DO NOTHING`,
			a.ID, a.Workspace, a.Caller.ID, a.Fingerprint, string(record), database.Millis(a.CreatedAt), database.Millis(a.ExpiresAt)); err != nil {
			return err
		}
		stored, err = approvalIn(tx.QueryRowContext(ctx, selectApprovals+` WHERE workspace = $1 AND fingerprint = $2 AND state = 'pending'`, a.Workspace, a.Fingerprint))
		return err
	})
	return stored, first, err
}

// TakeApproval uses the approval of a call, and reports whether there was one. If several identical calls are
// made at the same time, only one of them gets it.
func (s *Store) TakeApproval(ctx context.Context, workspace, fingerprint string) (taken bool, err error) {
	err = s.db.Update(ctx, "using an approval", func(ctx context.Context, tx *sql.Tx) error {
		taken, err = database.Changed(ctx, tx, `
			UPDATE approvals SET state = 'used' WHERE state = 'approved' AND id = (
				SELECT id FROM approvals WHERE workspace = $1 AND fingerprint = $2 AND state = 'approved' AND expires_at > $3 ORDER BY created_at, id LIMIT 1)`,
			workspace, fingerprint, database.Millis(time.Now()))
		return err
	})
	return taken, err
}

// DecideApproval stores the decision on a waiting call and, if a.Always is set, a standing approval. The error is
// core.CodeNotFound if the workspace has no such request, and core.CodeAlreadyAnswered if it is no longer waiting.
func (s *Store) DecideApproval(ctx context.Context, a core.Approval) error {
	decision, err := json.Marshal(decisionRecord{By: a.DecidedBy, Reason: a.Reason, Always: a.Always})
	if err != nil {
		return err
	}
	return s.db.Update(ctx, "deciding on a call", func(ctx context.Context, tx *sql.Tx) error {
		decided, err := database.Changed(ctx, tx, `
			UPDATE approvals SET state = $1, decided_by = $2, decision = $3, decided_at = $4 WHERE workspace = $5 AND id = $6 AND state = 'pending' AND expires_at > $7`,
			string(a.State), a.DecidedBy.ID, string(decision), database.Millis(a.DecidedAt), a.Workspace, a.ID, database.Millis(time.Now()))
		if err != nil {
			return err
		}
		if decided && a.Always {
			if err := grantStanding(ctx, tx, a); err != nil {
				return err
			}
		}
		if decided {
			return s.notifyPeers(ctx, tx, core.ChangeApproval, a.Workspace, a.ID)
		}
		now, err := findApproval(ctx, tx, a.Workspace, a.ID)
		if err != nil {
			return err
		}
		return tooLate(now)
	})
}

func findApproval(ctx context.Context, q database.Querier, workspace, id string) (core.Approval, error) {
	a, err := approvalIn(q.QueryRowContext(ctx, selectApprovals+` WHERE workspace = $1 AND id = $2`, workspace, id))
	return a, database.Missing(err, core.Errorf(core.CodeNotFound, "there is no call %.100q waiting for approval", id))
}

// tooLate returns the error that explains why a decision on a call comes too late.
func tooLate(a core.Approval) error {
	why := "user " + a.DecidedBy.ID + " has already approved it"
	switch a.State {
	case core.ApprovalRefused:
		why = "user " + a.DecidedBy.ID + " has already refused it"
	case core.ApprovalCancelled:
		why = "its caller cancelled it or disconnected, or its app was uninstalled"
	case core.ApprovalExpired:
		why = "nobody decided in time, and the request expired"
	default:
	}
	return core.Errorf(core.CodeAlreadyAnswered, "the call to tool %q is no longer waiting: %s", a.Tool, why).
		WithDetails(map[string]any{"approval": a.ID, "state": a.State})
}

// CancelApproval cancels the approval of a call that its caller cancelled before it was made. It reports whether there was
// an approval to cancel.
func (s *Store) CancelApproval(ctx context.Context, workspace, id string) (ended bool, err error) {
	err = s.db.Update(ctx, "cancelling an approval", func(ctx context.Context, tx *sql.Tx) error {
		ended, err = database.Changed(ctx, tx, `
			UPDATE approvals SET state = 'cancelled' WHERE workspace = $1 AND id = $2 AND state IN ('pending', 'approved') AND expires_at > $3`,
			workspace, id, database.Millis(time.Now()))
		if err != nil || !ended {
			return err
		}
		return s.notifyPeers(ctx, tx, core.ChangeApproval, workspace, id)
	})
	return ended, err
}

// cancelApprovals cancels the approvals of calls to an app that is being deleted, because another app may be installed under its name,
// and a person approved the calls to this one.
func (s *Store) cancelApprovals(ctx context.Context, tx *sql.Tx, workspace, app string) error {
	prefix := core.Tool{Server: app}.LongName()
	prefix = prefix[:min(len(prefix), core.MaxToolName-len("_12345678"))] // longer tool names end with a hash
	open, err := database.Collect(ctx, tx, selectApprovals+` WHERE workspace = $1 AND state IN ('pending', 'approved')`, []any{workspace}, approvalIn)
	if err != nil {
		return err
	}
	for _, a := range open {
		if !strings.HasPrefix(a.Tool, prefix) {
			continue
		}
		ended, err := database.Changed(ctx, tx, `UPDATE approvals SET state = 'cancelled' WHERE workspace = $1 AND id = $2 AND state IN ('pending', 'approved')`, workspace, a.ID)
		if err != nil {
			return err
		}
		if !ended { // the approval was decided on or used in the meantime
			continue
		}
		if err := s.notifyPeers(ctx, tx, core.ChangeApproval, workspace, a.ID); err != nil {
			return err
		}
	}
	return nil
}

// ExpireApprovals marks approvals as expired. It returns those that no other server has marked, and the time when the next
// approval expires, which is zero if there is none.
func (s *Store) ExpireApprovals(ctx context.Context) (expired []core.Approval, next time.Time, err error) {
	next, err = s.nextExpiry(ctx)
	if err != nil || next.IsZero() || next.After(time.Now()) {
		return nil, next, err
	}
	err = s.db.Update(ctx, "expiring approvals", func(ctx context.Context, tx *sql.Tx) error {
		expired, err = database.Collect(ctx, tx,
			`UPDATE approvals SET state = 'expired' WHERE state IN ('pending', 'approved') AND expires_at <= $1 RETURNING `+approvalColumns,
			[]any{database.Millis(time.Now())}, approvalIn)
		for i := 0; i < len(expired) && err == nil; i++ {
			err = s.notifyPeers(ctx, tx, core.ChangeApproval, expired[i].Workspace, expired[i].ID)
		}
		return err
	})
	if err != nil {
		return nil, time.Time{}, err
	}
	next, err = s.nextExpiry(ctx)
	return expired, next, err
}

func (s *Store) nextExpiry(ctx context.Context) (next time.Time, err error) {
	var first sql.NullInt64
	err = s.db.Get(ctx, "reading when an approval expires", `SELECT MIN(expires_at) FROM approvals WHERE state IN ('pending', 'approved')`, nil, &first)
	if err != nil || !first.Valid {
		return next, err
	}
	return database.FromMillis(first.Int64), nil
}

// Approval returns one approval of a workspace, or core.CodeNotFound.
func (s *Store) Approval(ctx context.Context, workspace, id string) (a core.Approval, err error) {
	err = s.db.Read(ctx, "reading an approval", func(ctx context.Context, q database.Querier) (err error) {
		a, err = findApproval(ctx, q, workspace, id)
		return err
	})
	return a, err
}

// Approvals returns a page of the approvals of a workspace, newest first. The error is core.CodeBadRequest for an
// invalid limit or cursor.
func (s *Store) Approvals(ctx context.Context, workspace string, q core.ApprovalQuery) (page core.ApprovalPage, err error) {
	limit := cmp.Or(q.Limit, maxApprovals)
	if limit < 1 || limit > maxApprovals {
		return page, core.Errorf(core.CodeBadRequest, "limit must be between 1 and %d", maxApprovals)
	}
	column := "created_at"
	if q.Decided {
		column = "decided_at"
	}
	after := approvalCursor{At: math.MaxInt64}
	if q.Cursor != "" {
		if err := after.decode(q.Cursor); err != nil {
			return page, err
		}
	}
	// An expired approval is treated as expired even before ExpireApprovals has marked it.
	page.Approvals, err = database.List(ctx, s.db, "reading the approvals", selectApprovals+` WHERE workspace = $1 AND ($2 = '' OR caller = $2)
		AND ($3 = '' OR CASE WHEN state IN ('pending', 'approved') AND expires_at <= $4 THEN 'expired' ELSE state END = $3)
		AND ($5 = 0 OR decided_by <> '') AND (`+column+` < $6 OR `+column+` = $6 AND id > $7)
		ORDER BY `+column+` DESC, id LIMIT $8`,
		[]any{workspace, q.Caller, string(q.State), database.Millis(time.Now()), flag(q.Decided), after.At, after.ID, limit + 1}, approvalIn)
	if len(page.Approvals) > limit {
		page.Approvals = page.Approvals[:limit]
		page.NextCursor = cursorAfter(page.Approvals[limit-1], q.Decided)
	}
	return page, err
}

// approvalCursor identifies the last approval of the previous page.
type approvalCursor struct {
	At int64  `json:"t"`
	ID string `json:"id"`
}

func cursorAfter(a core.Approval, decided bool) string {
	c := approvalCursor{At: database.Millis(a.CreatedAt), ID: a.ID}
	if decided {
		c.At = database.Millis(a.DecidedAt)
	}
	raw, _ := json.Marshal(c) // cannot fail
	return base64.RawURLEncoding.EncodeToString(raw)
}

func (c *approvalCursor) decode(text string) error {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(raw, c) != nil || c.ID == "" {
		return core.Errorf(core.CodeBadRequest, "cursor is not from this list; omit it to start over")
	}
	return nil
}

func approvalIn(row database.Row) (a core.Approval, err error) {
	var record, decision string
	var created, expires, decided int64
	if err := row.Scan(&a.ID, &a.Workspace, &a.Fingerprint, &record, &a.State, &created, &expires, &a.DecidedBy.ID, &decision, &decided); err != nil {
		return a, err
	}
	var r approvalRecord
	if err := json.Unmarshal([]byte(record), &r); err != nil {
		return a, err
	}
	a.Caller, a.Key, a.Tool, a.Arguments, a.Definition, a.Destructive, a.Account = r.Caller, r.Key, r.Tool, r.Arguments, r.Definition, r.Destructive, r.Account
	if decision != "" {
		var d decisionRecord
		if err := json.Unmarshal([]byte(decision), &d); err != nil {
			return a, err
		}
		a.DecidedBy, a.Reason, a.Always = d.By, d.Reason, d.Always
	}
	a.CreatedAt, a.ExpiresAt, a.DecidedAt = database.FromMillis(created), database.FromMillis(expires), optionalTime(decided)
	if !a.ExpiresAt.After(time.Now()) && (a.State == core.ApprovalPending || a.State == core.ApprovalApproved) {
		a.State = core.ApprovalExpired
	}
	return a, nil
}
