package store

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
)

// Member returns the role that a user was given in a workspace. The error is core.CodeWorkspaceDenied if there is
// no such member or workspace.
func (s *Store) Member(ctx context.Context, userID, workspace string) (core.Role, error) {
	var role core.Role
	err := s.db.Get(ctx, "reading a member", `SELECT role FROM members WHERE workspace = $1 AND user_id = $2`, []any{workspace, userID}, &role)
	return role, database.Missing(err, core.Errorf(core.CodeWorkspaceDenied, "not a member of workspace %s", workspace))
}

// Members returns the members of a workspace, sorted by name. Owners and admins of the organization are always
// admins of the default workspace, but are listed only where they were added. The error is core.CodeNotFound if
// there is no such workspace.
func (s *Store) Members(ctx context.Context, workspace string) ([]core.Member, error) {
	var members []core.Member
	err := s.db.View(ctx, "reading the members of "+workspace, func(ctx context.Context, tx *sql.Tx) error {
		_, err := personalOf(ctx, tx, workspace)
		if err != nil {
			return err
		}
		members, err = database.Collect(ctx, tx, `
			SELECT `+userColumns+`, m.role FROM members m JOIN users u ON u.id = m.user_id
			WHERE m.workspace = $1 ORDER BY u.display_name, u.email, u.id`, []any{workspace}, func(row database.Row) (m core.Member, err error) {
			err = row.Scan(append(userFields(&m.User), &m.Role)...)
			return m, err
		})
		return err
	})
	return members, err
}

// PutMember adds a user to a workspace or changes their role there. The error is core.CodeNotFound if there is no
// such user or workspace, and core.CodeInvalidInput for a role other than admin and member. It is core.CodeForbidden
// if the change would take the admin role from the owner of a personal workspace.
func (s *Store) PutMember(ctx context.Context, workspace, userID string, role core.Role) error {
	if role != core.RoleAdmin && role != core.RoleMember {
		return core.Errorf(core.CodeInvalidInput, "role must be %s or %s", core.RoleAdmin, core.RoleMember)
	}
	return s.changeMembers(ctx, "storing a member of "+workspace, workspace, of(userID, func(ctx context.Context, tx *sql.Tx) error {
		owner, err := personalOf(ctx, tx, workspace)
		if err != nil {
			return err
		}
		if owner == userID && role != core.RoleAdmin {
			return core.Errorf(core.CodeForbidden, "workspace %s is personal, so its owner must remain its admin", workspace)
		}
		if _, err := findUser(ctx, tx, userID); err != nil {
			return err
		}
		return putMember(ctx, tx, workspace, userID, role)
	}))
}

func putMember(ctx context.Context, tx *sql.Tx, workspace, userID string, role core.Role) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO members (workspace, user_id, role) VALUES ($1, $2, $3)
		ON CONFLICT (workspace, user_id) DO UPDATE SET role = excluded.role, by_group = 0`, workspace, userID, string(role))
	return err
}

// DeleteMember removes a user from a workspace. The user's conversations there are kept, in case the user returns. It
// is not an error if the user is not a member. The error is core.CodeNotFound if there is no such workspace, and
// core.CodeForbidden for the owner of a personal workspace.
func (s *Store) DeleteMember(ctx context.Context, workspace, userID string) error {
	return s.changeMembers(ctx, "removing a member of "+workspace, workspace, of(userID, func(ctx context.Context, tx *sql.Tx) error {
		owner, err := personalOf(ctx, tx, workspace)
		if err != nil {
			return err
		}
		if owner == userID {
			return core.Errorf(core.CodeForbidden, "workspace %s is personal, so its owner cannot be removed", workspace)
		}
		return s.removeMember(ctx, tx, workspace, userID)
	}))
}

func (s *Store) removeMember(ctx context.Context, tx *sql.Tx, workspace, userID string) error {
	if err := s.unlink(ctx, tx, `workspace = $1 AND owner = $2`, workspace, userID); err != nil {
		return err
	}
	for _, table := range []string{"kept_results", "members"} {
		if _, err := tx.ExecContext(ctx, `DELETE FROM `+table+` WHERE workspace = $1 AND user_id = $2`, workspace, userID); err != nil {
			return err
		}
	}
	return nil
}

// personalOf returns the id of the user to whom a personal workspace belongs, or "" for other workspaces. The error
// is core.CodeNotFound if there is no such workspace.
func personalOf(ctx context.Context, q database.Querier, workspace string) (string, error) {
	var owner string
	err := q.QueryRowContext(ctx, `SELECT COALESCE(personal_of, '') FROM workspaces WHERE id = $1`, workspace).Scan(&owner)
	return owner, database.Missing(err, core.Errorf(core.CodeNotFound, "there is no workspace %s", workspace))
}

// JoinOnce adds a user to a workspace unless it has done so before, so that a user who was later removed is
// not added again. It reports whether it added the user. The error is core.CodeNotFound if there is no such
// workspace.
func (s *Store) JoinOnce(ctx context.Context, userID, workspace string, role core.Role) (joined bool, err error) {
	err = s.changeMembers(ctx, "joining a workspace", workspace, func(ctx context.Context, tx *sql.Tx) ([]string, error) {
		if _, err := personalOf(ctx, tx, workspace); err != nil {
			return nil, err
		}
		if changed, err := database.Changed(ctx, tx, `UPDATE users SET joined_at = $1 WHERE id = $2 AND joined_at = 0`, database.Millis(time.Now()), userID); err != nil || !changed {
			return nil, err
		}
		joined = true
		_, err = tx.ExecContext(ctx, `INSERT INTO members (workspace, user_id, role) VALUES ($1, $2, $3)
			ON CONFLICT (workspace, user_id) DO NOTHING`, workspace, userID, string(role))
		return []string{userID}, err
	})
	return joined && err == nil, err
}

// SetGroupRoles makes the workspaces in roles (core.User.GroupRoles) the ones that a user belongs to through groups. It
// does not change a membership that the user has for another reason. Workspaces that do not exist are ignored.
func (s *Store) SetGroupRoles(ctx context.Context, userID, roles string) error {
	return s.changeMembers(ctx, "updating memberships from groups", "", of(userID, func(ctx context.Context, tx *sql.Tx) error {
		kept := []string{}
		for one := range strings.FieldsSeq(roles) {
			workspace, role, _ := strings.Cut(one, ":")
			if _, err := personalOf(ctx, tx, workspace); core.CodeOf(err) == core.CodeNotFound {
				s.log.Warn("auth.join refers to a workspace that does not exist", "workspace", workspace)
				continue
			} else if err != nil {
				return err
			}
			kept = append(kept, workspace)
			if _, err := tx.ExecContext(ctx, `INSERT INTO members (workspace, user_id, role, by_group) VALUES ($1, $2, $3, 1)
				ON CONFLICT (workspace, user_id) DO UPDATE SET role = excluded.role WHERE members.by_group = 1`, workspace, userID, role); err != nil {
				return err
			}
		}
		left, err := database.Collect(ctx, tx, `SELECT workspace FROM members WHERE user_id = $1 AND by_group = 1`, []any{userID}, func(row database.Row) (w string, err error) {
			err = row.Scan(&w)
			return w, err
		})
		if err != nil {
			return err
		}
		for _, workspace := range left {
			if slices.Contains(kept, workspace) {
				continue
			}
			if err := s.removeMember(ctx, tx, workspace, userID); err != nil {
				return err
			}
		}
		_, err = tx.ExecContext(ctx, `UPDATE users SET group_roles = $1 WHERE id = $2`, roles, userID)
		return err
	}))
}

const settingFirstAdmin = "auth.firstAdmin"

// ClaimFirstAdmin makes a user an admin of the organization if no other user from an identity provider is or
// was one. It reports whether it did so. At most one user ever becomes the first admin.
func (s *Store) ClaimFirstAdmin(ctx context.Context, userID string) (claimed bool, err error) {
	err = s.changeMembers(ctx, "choosing the first admin", "", func(ctx context.Context, tx *sql.Tx) ([]string, error) {
		var admins int
		if err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM users u WHERE u.issuer <> $1
			AND `+orgRole+` IN ('owner', 'admin')`, core.IssuerLocal).Scan(&admins); err != nil || admins > 0 {
			return nil, err
		}
		var err error
		if claimed, err = claimFirstAdmin(ctx, tx, userID); err != nil || !claimed {
			return nil, err
		}
		_, err = tx.ExecContext(ctx, `UPDATE users SET given_role = $1 WHERE id = $2`, string(core.RoleAdmin), userID)
		return []string{userID}, err
	})
	return claimed && err == nil, err
}

// claimFirstAdmin records a user as the first admin and reports whether nobody was recorded before. The user ""
// means that there will be no first admin.
func claimFirstAdmin(ctx context.Context, tx *sql.Tx, userID string) (claimed bool, err error) {
	return database.Changed(ctx, tx, `INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`, settingFirstAdmin, userID)
}
