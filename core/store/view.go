package store

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
)

// Limits on what a workspace can store. Every server keeps all views in memory.
const (
	maxViews     = 200
	maxViewBytes = 4 << 20 // bytes of all definitions
)

// Views returns the views of all workspaces.
func (s *Store) Views(ctx context.Context) (map[string][]core.View, error) {
	all := map[string][]core.View{}
	err := s.db.Select(ctx, "reading the views", `SELECT workspace, definition FROM views ORDER BY workspace, name`, nil, func(row database.Row) error {
		var workspace, definition string
		if err := row.Scan(&workspace, &definition); err != nil {
			return err
		}
		var v core.View
		if err := json.Unmarshal([]byte(definition), &v); err != nil {
			return err
		}
		all[workspace] = append(all[workspace], v)
		return nil
	})
	return all, err
}

// PutView stores a view, and replaces one with the same name. The error is core.CodeNotFound for an unknown workspace, and
// core.CodeLimitReached for a workspace with too many views.
func (s *Store) PutView(ctx context.Context, workspace string, v core.View) error {
	definition, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.db.Update(ctx, "storing a view", func(ctx context.Context, tx *sql.Tx) error {
		if _, err := personalOf(ctx, tx, workspace); err != nil {
			return err
		}
		if err := s.lock(ctx, tx, "workspaces", workspace); err != nil {
			return err
		}
		var others, size int
		if err := tx.QueryRowContext(ctx, `SELECT COUNT(*), CAST(COALESCE(SUM(LENGTH(definition)), 0) AS BIGINT) FROM views WHERE workspace = $1 AND name <> $2`,
			workspace, v.Name).Scan(&others, &size); err != nil {
			return err
		}
		switch {
		case others >= maxViews:
			return core.Errorf(core.CodeLimitReached, "the workspace has %d views; remove one first", others)
		case size+len(definition) > maxViewBytes:
			return core.Errorf(core.CodeLimitReached, "the workspace's views would take up more than %d MiB; remove one, or shorten its descriptions", maxViewBytes>>20)
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO views (workspace, name, definition) VALUES ($1, $2, $3)
			ON CONFLICT (workspace, name) DO UPDATE SET definition = excluded.definition`, workspace, v.Name, string(definition))
		if err != nil {
			return err
		}
		return s.notifyPeers(ctx, tx, core.ChangeViews, workspace, v.Name)
	})
}

// DeleteView deletes a view. The error is core.CodeNotFound if there is no such view.
func (s *Store) DeleteView(ctx context.Context, workspace, name string) error {
	return s.db.Update(ctx, "deleting a view", func(ctx context.Context, tx *sql.Tx) error {
		if err := database.Change(ctx, tx, core.Errorf(core.CodeNotFound, "there is no view %.80q in this workspace", name),
			`DELETE FROM views WHERE workspace = $1 AND name = $2`, workspace, name); err != nil {
			return err
		}
		return s.notifyPeers(ctx, tx, core.ChangeViews, workspace, name)
	})
}
