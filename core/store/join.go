package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
)

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
