package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// EnsureDefaultWorkspace makes the default workspace and the instance's owner, its first admin, if
// they are not there, and returns the owner's view of it. Open has called it already.
func (s *Store) EnsureDefaultWorkspace(ctx context.Context) (core.Workspace, error) {
	owner := core.Owner()
	w := core.Workspace{ID: core.DefaultWorkspaceID, Name: "Default", Role: core.RoleAdmin}
	err := s.change(ctx, "making the default workspace", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `
			INSERT INTO workspaces (id, name, created_at) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING`,
			w.ID, w.Name, millis(time.Now())); err != nil {
			return err
		}
		if _, err := upsertUser(ctx, tx, owner.Issuer, owner.Subject, owner.User); err != nil {
			return err
		}
		if err := putMember(ctx, tx, w.ID, owner.User.ID, core.RoleAdmin); err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, `SELECT name FROM workspaces WHERE id = $1`, w.ID).Scan(&w.Name)
	})
	return w, err
}

// Workspaces returns a user's workspaces with the user's role in each: the default workspace
// first, then the personal one, then the others by name. Owners and admins of the organization are
// admins of the default workspace without being listed as members of it.
func (s *Store) Workspaces(ctx context.Context, u core.User) ([]core.Workspace, error) {
	rows, err := s.read.QueryContext(ctx, `
		SELECT w.id, w.name, CASE WHEN w.id = $1 AND $2 THEN 'admin' ELSE m.role END
		FROM workspaces w LEFT JOIN members m ON m.workspace = w.id AND m.user_id = $3
		WHERE m.user_id IS NOT NULL OR (w.id = $1 AND $2)
		ORDER BY CASE WHEN w.id = $1 THEN 0 WHEN w.personal_of = $3 THEN 1 ELSE 2 END, w.name, w.id`,
		core.DefaultWorkspaceID, u.OrgRole.Admin(), u.ID)
	if err != nil {
		return nil, fmt.Errorf("reading a user's workspaces: %w", explain(err))
	}
	defer func() { _ = rows.Close() }()
	var all []core.Workspace
	for rows.Next() {
		var w core.Workspace
		if err := rows.Scan(&w.ID, &w.Name, &w.Role); err != nil {
			return nil, fmt.Errorf("reading a user's workspaces: %w", err)
		}
		all = append(all, w)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("reading a user's workspaces: %w", explain(err))
	}
	return all, nil
}

// Member returns the role a user was given in a workspace; core.CodeWorkspaceDenied when there is
// none, or no such workspace.
func (s *Store) Member(ctx context.Context, userID, workspace string) (core.Role, error) {
	var role core.Role
	err := s.read.QueryRowContext(ctx, `SELECT role FROM members WHERE workspace = $1 AND user_id = $2`, workspace, userID).Scan(&role)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", core.Errorf(core.CodeWorkspaceDenied, "not a member of workspace %s", workspace)
	case err != nil:
		return "", fmt.Errorf("reading a member: %w", explain(err))
	}
	return role, nil
}

// PutMember adds a user to a workspace, or changes the role there. Both must exist; the role is
// admin or member. Tell access.Access.MembersChanged afterwards.
func (s *Store) PutMember(ctx context.Context, workspace, userID string, role core.Role) error {
	return s.change(ctx, "keeping a member of "+workspace, func(tx *sql.Tx) error {
		return putMember(ctx, tx, workspace, userID, role)
	})
}

func putMember(ctx context.Context, tx *sql.Tx, workspace, userID string, role core.Role) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO members (workspace, user_id, role) VALUES ($1, $2, $3)
		ON CONFLICT (workspace, user_id) DO UPDATE SET role = excluded.role`, workspace, userID, string(role))
	return err
}

// DeleteMember takes a user out of a workspace. Taking out one who is not in it is not an error.
// Tell access.Access.MembersChanged afterwards.
func (s *Store) DeleteMember(ctx context.Context, workspace, userID string) error {
	_, err := s.exec(ctx, "removing a member of "+workspace, `DELETE FROM members WHERE workspace = $1 AND user_id = $2`, workspace, userID)
	return err
}
