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
	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/store/database"
)

// A page has at most maxApprovals approvals, and ends once their arguments have approvalBytes.
const (
	maxApprovals  = 500
	approvalBytes = 4 << 20
)

// errPageFull ends the reading of a page.
var errPageFull = errors.New("the page is full")

// approvalRecord contains the fields of an approval that no query selects by.
type approvalRecord struct {
	Caller    core.User       `json:"caller"`
	Key       string          `json:"key,omitempty"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"`

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
		record, err := recordOf(a)
		if err != nil {
			return err
		}
		if first, err = database.Changed(ctx, tx, `
			INSERT INTO approvals (id, workspace, caller, fingerprint, record, state, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, 'pending', $6, $7)
			ON CONFLICT (workspace, fingerprint) WHERE state = 'pending' DO NOTHING`,
			a.ID, a.Workspace, a.Caller.ID, a.Fingerprint, record, database.Millis(a.CreatedAt), database.Millis(a.ExpiresAt)); err != nil {
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

// endApprovals ends the waiting and approved calls that a condition selects, and returns them. Only what a person has
// decided on keeps its arguments: they may be large, and anybody can make calls wait. $1 is the state.
func (s *Store) endApprovals(ctx context.Context, tx *sql.Tx, state core.ApprovalState, condition string, args ...any) ([]core.Approval, error) {
	ended, err := database.Collect(ctx, tx, `UPDATE approvals SET state = $1 WHERE state IN ('pending', 'approved') AND `+condition+` RETURNING `+approvalColumns,
		append([]any{string(state)}, args...), approvalIn)
	for i := 0; i < len(ended) && err == nil; i++ {
		a := &ended[i]
		a.Arguments = nil
		if a.DecidedBy.ID == "" {
			var record string
			if record, err = recordOf(*a); err == nil {
				_, err = tx.ExecContext(ctx, `UPDATE approvals SET record = $2 WHERE id = $1`, a.ID, record)
			}
		}
		err = errors.Join(err, s.notifyPeers(ctx, tx, core.ChangeApproval, a.Workspace, a.ID))
	}
	return ended, err
}

// recordOf returns the record of an approval, without HTML escapes: they would make its arguments up to six times as
// long.
func recordOf(a core.Approval) (string, error) {
	record, err := rawjson.Encode(approvalRecord{Caller: a.Caller, Key: a.Key, Tool: a.Tool, Arguments: a.Arguments, Definition: a.Definition, Destructive: a.Destructive, Account: a.Account})
	return string(record), err
}

// CancelApproval cancels the approval of a call that its caller cancelled before it was made. It reports whether there was
// an approval to cancel.
func (s *Store) CancelApproval(ctx context.Context, workspace, id string) (ended bool, err error) {
	err = s.db.Update(ctx, "cancelling an approval", func(ctx context.Context, tx *sql.Tx) error {
		all, err := s.endApprovals(ctx, tx, core.ApprovalCancelled, `workspace = $2 AND id = $3 AND expires_at > $4`, workspace, id, database.Millis(time.Now()))
		ended = len(all) > 0
		return err
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
		// The approval may have been used in the meantime.
		if _, err := s.endApprovals(ctx, tx, core.ApprovalCancelled, `workspace = $2 AND id = $3`, workspace, a.ID); err != nil {
			return err
		}
	}
	return nil
}

// expireAtOnce is how many approvals one transaction ends. Together, their arguments may be large.
const expireAtOnce = 20

// ExpireApprovals ends expired approvals. It returns those that no other server has ended, without their arguments, and
// the time when the next approval expires, which is zero if there is none.
func (s *Store) ExpireApprovals(ctx context.Context) (expired []core.Approval, next time.Time, err error) {
	for {
		next, err = s.nextExpiry(ctx)
		if err != nil || next.IsZero() || next.After(time.Now()) {
			return expired, next, err
		}
		some, err := s.expireSome(ctx)
		if err != nil {
			return expired, time.Time{}, err // those that have ended must still be announced
		}
		expired = append(expired, some...)
	}
}

func (s *Store) expireSome(ctx context.Context) (expired []core.Approval, err error) {
	now := database.Millis(time.Now())
	err = s.db.Update(ctx, "ending expired approvals", func(ctx context.Context, tx *sql.Tx) error {
		expired, err = s.endApprovals(ctx, tx, core.ApprovalExpired, `expires_at <= $2 AND id IN (
			SELECT id FROM approvals WHERE state IN ('pending', 'approved') AND expires_at <= $2 ORDER BY expires_at LIMIT $3)`, now, expireAtOnce)
		return err
	})
	return expired, err
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

// Approvals returns a page of the approvals of a workspace, newest first. A page with long arguments is shorter than its
// limit. The error is core.CodeBadRequest for an invalid limit or cursor.
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
	// An expired approval is treated as expired even before ExpireApprovals has ended it.
	page.Approvals = []core.Approval{}
	size := 0
	err = s.db.Select(ctx, "reading the approvals", selectApprovals+` WHERE workspace = $1 AND ($2 = '' OR caller = $2)
		AND ($3 = '' OR CASE WHEN state IN ('pending', 'approved') AND expires_at <= $4 THEN 'expired' ELSE state END = $3)
		AND ($5 = 0 OR decided_by <> '') AND (`+column+` < $6 OR `+column+` = $6 AND id > $7)
		ORDER BY `+column+` DESC, id LIMIT $8`,
		[]any{workspace, q.Caller, string(q.State), database.Millis(time.Now()), flag(q.Decided), after.At, after.ID, limit + 1}, func(row database.Row) error {
			a, err := approvalIn(row)
			if n := len(page.Approvals); err == nil && n > 0 && (n == limit || size+len(a.Arguments) > approvalBytes) {
				page.NextCursor = cursorAfter(page.Approvals[n-1], q.Decided)
				return errPageFull
			}
			page.Approvals, size = append(page.Approvals, a), size+len(a.Arguments)
			return err
		})
	if errors.Is(err, errPageFull) {
		err = nil
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
