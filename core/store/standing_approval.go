package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
)

const selectStanding = `SELECT id, workspace, tool, definition, granted_by, created_at FROM standing_approvals`

// grantStanding stores a standing approval for the tool of a decided call, with the tool's definition at that call.
func grantStanding(ctx context.Context, tx *sql.Tx, a core.Approval) error {
	by, err := json.Marshal(a.DecidedBy)
	if err != nil {
		return err
	}
	app, _, _ := strings.Cut(a.Tool, "__")
	_, err = tx.ExecContext(ctx, `
		INSERT INTO standing_approvals (id, workspace, app, tool, definition, granted_by, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (workspace, tool) DO UPDATE SET id = excluded.id, definition = excluded.definition, granted_by = excluded.granted_by, created_at = excluded.created_at`,
		core.RandomID("sta_"), a.Workspace, app, a.Tool, a.Definition, string(by), database.Millis(a.DecidedAt))
	return err
}

// HasStandingApproval reports whether there is a standing approval for a tool with this definition.
func (s *Store) HasStandingApproval(ctx context.Context, workspace, tool, definition string) (bool, error) {
	var n int
	err := s.db.Get(ctx, "reading the standing approval of "+tool,
		`SELECT COUNT(*) FROM standing_approvals WHERE workspace = $1 AND tool = $2 AND definition = $3`, []any{workspace, tool, definition}, &n)
	return n > 0, err
}

// StandingApprovals returns the standing approvals of a workspace, sorted by tool, without those of uninstalled apps.
func (s *Store) StandingApprovals(ctx context.Context, workspace string) ([]core.StandingApproval, error) {
	return database.List(ctx, s.db, "reading the standing approvals", selectStanding+` WHERE workspace = $1 AND NOT EXISTS (
		SELECT 1 FROM installations i WHERE i.workspace = standing_approvals.workspace AND i.name = app AND i.undo_until > 0) ORDER BY tool`, []any{workspace}, standingIn)
}

// WithdrawApproval deletes and returns a standing approval. The error is core.CodeNotFound if the workspace has none with
// this id for a tool that is shown.
func (s *Store) WithdrawApproval(ctx context.Context, workspace, id string, shown func(tool string) bool) (a core.StandingApproval, err error) {
	err = s.db.Update(ctx, "withdrawing a standing approval", func(ctx context.Context, tx *sql.Tx) error {
		a, err = standingIn(tx.QueryRowContext(ctx, `DELETE FROM standing_approvals WHERE workspace = $1 AND id = $2
			RETURNING id, workspace, tool, definition, granted_by, created_at`, workspace, id))
		if err == nil && !shown(a.Tool) {
			err = sql.ErrNoRows
		}
		return database.Missing(err, core.Errorf(core.CodeNotFound, "no standing approval has the id %.100q", id))
	})
	return a, err
}

func standingIn(row database.Row) (a core.StandingApproval, err error) {
	var by string
	var created int64
	if err := row.Scan(&a.ID, &a.Workspace, &a.Tool, &a.Definition, &by, &created); err != nil {
		return a, err
	}
	a.Since = database.FromMillis(created)
	return a, json.Unmarshal([]byte(by), &a.By)
}
