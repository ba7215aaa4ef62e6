package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
)

// Member returns the role a user was given in a workspace; core.CodeWorkspaceDenied when there is
// none, or no such workspace.
func (s *Store) Member(ctx context.Context, userID, workspace string) (core.Role, error) {
	var role core.Role
	err := s.db.Get(ctx, `SELECT role FROM members WHERE workspace = $1 AND user_id = $2`, []any{workspace, userID}, &role)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", core.Errorf(core.CodeWorkspaceDenied, "not a member of workspace %s", workspace)
	case err != nil:
		return "", fmt.Errorf("reading a member: %w", err)
	}
	return role, nil
}

// Members returns the members of a workspace, by name. core.CodeNotFound when there is no such
// workspace. Owners and admins of the organization, who are admins of the default workspace anyway,
// are listed only where they were added.
func (s *Store) Members(ctx context.Context, workspace string) ([]core.Member, error) {
	members := []core.Member{}
	err := s.db.View(ctx, "reading the members of "+workspace, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := personalOf(ctx, tx, workspace); err != nil {
			return err
		}
		rows, err := tx.QueryContext(ctx, `
			SELECT `+userColumns+`, m.role FROM members m JOIN users u ON u.id = m.user_id
			WHERE m.workspace = $1 ORDER BY u.display_name, u.email, u.id`, workspace)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var m core.Member
			if err := rows.Scan(&m.User.ID, &m.User.Email, &m.User.DisplayName, &m.User.OrgRole, &m.Role); err != nil {
				return err
			}
			members = append(members, m)
		}
		return rows.Err()
	})
	return members, err
}

// PutMember adds a user to a workspace, or changes the role there. core.CodeNotFound when there is
// no such user or workspace, core.CodeInvalidInput for a role other than admin and member,
// core.CodeForbidden for taking the role admin from the owner of a personal workspace. Call
// access.Access.MembersChanged afterwards.
func (s *Store) PutMember(ctx context.Context, workspace, userID string, role core.Role) error {
	if role != core.RoleAdmin && role != core.RoleMember {
		return core.Errorf(core.CodeInvalidInput, "role: must be %s or %s", core.RoleAdmin, core.RoleMember)
	}
	return s.db.Update(ctx, "storing a member of "+workspace, func(ctx context.Context, tx *sql.Tx) error {
		owner, err := personalOf(ctx, tx, workspace)
		if err != nil {
			return err
		}
		if owner == userID && role != core.RoleAdmin {
			return core.Errorf(core.CodeForbidden, "workspace %s is personal: its owner stays its admin", workspace)
		}
		if _, err := findUser(ctx, tx, userID); err != nil {
			return err
		}
		if err := putMember(ctx, tx, workspace, userID, role); err != nil {
			return err
		}
		return s.notifyPeers(ctx, tx, core.ChangeMembers, workspace, userID)
	})
}

func putMember(ctx context.Context, tx *sql.Tx, workspace, userID string, role core.Role) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO members (workspace, user_id, role) VALUES ($1, $2, $3)
		ON CONFLICT (workspace, user_id) DO UPDATE SET role = excluded.role`, workspace, userID, string(role))
	return err
}

// DeleteMember removes a user from a workspace; the user's conversations there stay, for a return. It is
// not an error when the user is not a member. core.CodeNotFound when there is no such
// workspace, core.CodeForbidden for the owner of a personal one. Call access.Access.MembersChanged
// afterwards.
func (s *Store) DeleteMember(ctx context.Context, workspace, userID string) error {
	return s.db.Update(ctx, "removing a member of "+workspace, func(ctx context.Context, tx *sql.Tx) error {
		owner, err := personalOf(ctx, tx, workspace)
		if err != nil {
			return err
		}
		if owner == userID {
			return core.Errorf(core.CodeForbidden, "workspace %s is personal: its owner stays in it", workspace)
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM members WHERE workspace = $1 AND user_id = $2`, workspace, userID); err != nil {
			return err
		}
		return s.notifyPeers(ctx, tx, core.ChangeMembers, workspace, userID)
	})
}

// personalOf returns the user whose personal workspace it is, "" for none; core.CodeNotFound when there is
// no such workspace.
func personalOf(ctx context.Context, q database.Querier, workspace string) (string, error) {
	var owner *string
	err := q.QueryRowContext(ctx, `SELECT personal_of FROM workspaces WHERE id = $1`, workspace).Scan(&owner)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", core.Errorf(core.CodeNotFound, "no workspace %s", workspace)
	case err != nil || owner == nil:
		return "", err
	}
	return *owner, nil
}

// JoinOnce adds a user to a workspace unless that was done before: somebody who was removed later is
// not added again. It reports whether the user joined now. core.CodeNotFound when there is no such
// workspace. Call access.Access.MembersChanged after a join.
func (s *Store) JoinOnce(ctx context.Context, userID, workspace string, role core.Role) (joined bool, err error) {
	err = s.db.Update(ctx, "joining a workspace", func(ctx context.Context, tx *sql.Tx) error {
		if _, err := personalOf(ctx, tx, workspace); err != nil {
			return err
		}
		done, err := tx.ExecContext(ctx, `UPDATE users SET joined_at = $1 WHERE id = $2 AND joined_at = 0`, database.Millis(time.Now()), userID)
		if err != nil {
			return err
		}
		n, err := done.RowsAffected()
		if err != nil || n == 0 {
			return err
		}
		joined = true
		if _, err := tx.ExecContext(ctx, `INSERT INTO members (workspace, user_id, role) VALUES ($1, $2, $3)
			ON CONFLICT (workspace, user_id) DO NOTHING`, workspace, userID, string(role)); err != nil {
			return err
		}
		return s.notifyPeers(ctx, tx, core.ChangeMembers, workspace, userID)
	})
	return joined && err == nil, err
}

const settingFirstAdmin = "auth.firstAdmin"

// ClaimFirstAdmin makes a user an admin of the organization if the server has had no other user from an
// identity provider who was one. It reports whether it did: of all users at most one ever becomes the
// first admin.
func (s *Store) ClaimFirstAdmin(ctx context.Context, userID string) (claimed bool, err error) {
	err = s.db.Update(ctx, "naming the first admin", func(ctx context.Context, tx *sql.Tx) error {
		var admins int
		if err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM users u WHERE u.issuer <> $1
			AND COALESCE(NULLIF(u.given_role, ''), u.org_role) IN ('owner', 'admin')`, core.IssuerLocal).Scan(&admins); err != nil || admins > 0 {
			return err
		}
		done, err := tx.ExecContext(ctx, `INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`, settingFirstAdmin, userID)
		if err != nil {
			return err
		}
		n, err := done.RowsAffected()
		if err != nil || n == 0 {
			return err
		}
		claimed = true
		if _, err := tx.ExecContext(ctx, `UPDATE users SET given_role = $1 WHERE id = $2`, string(core.RoleAdmin), userID); err != nil {
			return err
		}
		return s.notifyPeers(ctx, tx, core.ChangeMembers, "", userID)
	})
	return claimed && err == nil, err
}
