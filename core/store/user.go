package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
)

// Provision returns the user behind an identity. The first time, it creates the user and a personal workspace, in one
// transaction and only once, even if there are many callers at the same time. Later it updates email, name,
// organization role, AdminBy and groups. An empty email or name does not replace an existing one, because not every
// token has them. An organization role that was given here (SetOrgRole) takes precedence over the identity's, and
// AdminBy over both. A new identity is linked to a user who has the same email at an issuer in sameAs, if there is
// exactly one.
func (s *Store) Provision(ctx context.Context, id core.Identity, sameAs []string) (core.User, error) {
	if id.Issuer == "" || id.Subject == "" {
		return core.User{}, errors.New("provisioning a user: the identity has no issuer or no subject")
	}
	stored, effective, err := s.user(ctx, id.Issuer, id.Subject)
	switch {
	case err == nil && stored == updated(stored, id):
		return effective, nil
	case err != nil && !errors.Is(err, sql.ErrNoRows):
		return core.User{}, err
	}
	user := updated(core.User{ID: newID("usr_")}, id)
	err = s.changeMembers(ctx, "provisioning a user", "", func(ctx context.Context, tx *sql.Tx) (changed []string, err error) {
		if id.User.AdminBy != "" { // once auth.admins has made someone an admin, nobody else becomes the first admin
			if _, err := claimFirstAdmin(ctx, tx, ""); err != nil {
				return nil, err
			}
		}
		first, linked, err := s.firstIdentity(ctx, tx, id, sameAs)
		if err != nil {
			return nil, err
		}
		user, err = upsertUser(ctx, tx, first, user, id.GroupsUnknown)
		if linked || stored.Groups != user.Groups { // the user's API keys may be valid again, or give access to other tools
			changed = []string{user.ID}
		}
		if err != nil || id.Issuer == core.IssuerLocal {
			return changed, err
		}
		return changed, ensurePersonal(ctx, tx, user)
	})
	if err != nil {
		return core.User{}, err
	}
	return user, nil
}

// updated returns a stored user, updated from an identity.
func updated(stored core.User, id core.Identity) core.User {
	identity := id.User
	stored.Email = cmp.Or(identity.Email, stored.Email)
	stored.DisplayName = cmp.Or(identity.DisplayName, stored.DisplayName)
	stored.OrgRole, stored.AdminBy = cmp.Or(identity.OrgRole, core.RoleMember), identity.AdminBy
	if !id.GroupsUnknown {
		stored.Groups = identity.Groups
	}
	return stored
}

const (
	// ownRole selects the organization role of a user u, not considering auth.admins.
	ownRole = `COALESCE(NULLIF(u.given_role, ''), u.org_role)`

	// orgRole selects the effective organization role of a user u.
	orgRole = `CASE WHEN u.admin_by <> '' AND ` + ownRole + ` NOT IN ('owner', 'admin') THEN 'admin' ELSE ` + ownRole + ` END`

	// userColumns selects a user u into userFields.
	userColumns = `u.id, u.email, u.display_name, ` + orgRole + `, CASE WHEN ` + ownRole + ` IN ('owner', 'admin') THEN '' ELSE u.admin_by END, u.group_roles, u.provider_groups`
)

func userFields(u *core.User) []any {
	return []any{&u.ID, &u.Email, &u.DisplayName, &u.OrgRole, &u.AdminBy, &u.GroupRoles, &u.Groups}
}

// user returns the user of an identity, both as stored and with the effective role.
func (s *Store) user(ctx context.Context, issuer, subject string) (stored, effective core.User, err error) {
	err = s.db.Get(ctx, "looking up a user", `SELECT `+userColumns+`, u.org_role, u.admin_by FROM users u WHERE u.id = `+userOf, []any{issuer, subject},
		append(userFields(&effective), &stored.OrgRole, &stored.AdminBy)...)
	role, admin := stored.OrgRole, stored.AdminBy
	stored = effective
	stored.OrgRole, stored.AdminBy = role, admin
	return stored, effective, err
}

func upsertUser(ctx context.Context, tx *sql.Tx, first core.Subject, u core.User, keepGroups bool) (core.User, error) {
	err := tx.QueryRowContext(ctx, `
		INSERT INTO users (id, issuer, subject, email, display_name, org_role, admin_by, provider_groups, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		ON CONFLICT (issuer, subject) DO UPDATE SET
			email = COALESCE(NULLIF(excluded.email, ''), users.email),
			display_name = COALESCE(NULLIF(excluded.display_name, ''), users.display_name),
			org_role = excluded.org_role, admin_by = excluded.admin_by, 
			provider_groups = CASE WHEN CAST($10 AS BIGINT) = 1 THEN users.provider_groups ELSE excluded.provider_groups END
		RETURNING `+strings.ReplaceAll(userColumns, "u.", ""),
		u.ID, first.Issuer, first.Subject, u.Email, u.DisplayName, string(u.OrgRole), u.AdminBy, u.Groups, database.Millis(time.Now()), flag(keepGroups)).
		Scan(userFields(&u)...)
	return u, err
}

// RetainAdmins removes the admin role from users who have it only through auth.admins, unless their AdminBy is
// listed. Call access.Access.MembersChanged afterwards.
func (s *Store) RetainAdmins(ctx context.Context, listed []string) error {
	reasons, err := database.List(ctx, s.db, "reading the admins", `SELECT DISTINCT admin_by FROM users WHERE admin_by <> ''`, nil, func(row database.Row) (reason string, err error) {
		err = row.Scan(&reason)
		return reason, err
	})
	if err != nil {
		return err
	}
	return s.db.Update(ctx, "removing admins", func(ctx context.Context, tx *sql.Tx) error {
		removed := false
		for _, reason := range reasons {
			if slices.Contains(listed, reason) {
				continue
			}
			if _, err := tx.ExecContext(ctx, `UPDATE users SET admin_by = '' WHERE admin_by = $1`, reason); err != nil {
				return err
			}
			removed = true
		}
		if !removed {
			return nil
		}
		return s.notifyPeers(ctx, tx, core.ChangeMembers, "", "")
	})
}

// ensurePersonal creates the personal workspace of a user if it does not exist.
func ensurePersonal(ctx context.Context, tx *sql.Tx, u core.User) error {
	name := cmp.Or(u.DisplayName, u.Email, "Personal")
	if _, err := tx.ExecContext(ctx, `
		INSERT INTO workspaces (id, name, personal_of, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT (personal_of) DO NOTHING`,
		newID("ws_"), name, u.ID, database.Millis(time.Now())); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `
		INSERT INTO members (workspace, user_id, role) SELECT id, personal_of, 'admin' FROM workspaces WHERE personal_of = $1
		ON CONFLICT (workspace, user_id) DO NOTHING`, u.ID)
	return err
}

// User returns the user with an id, or core.CodeNotFound.
func (s *Store) User(ctx context.Context, id string) (core.User, error) {
	var u core.User
	err := s.db.Read(ctx, "reading a user", func(ctx context.Context, q database.Querier) (err error) {
		u, err = findUser(ctx, q, id)
		return err
	})
	return u, err
}

func findUser(ctx context.Context, q database.Querier, id string) (core.User, error) {
	var u core.User
	err := q.QueryRowContext(ctx, `SELECT `+userColumns+` FROM users u WHERE u.id = $1`, id).Scan(userFields(&u)...)
	return u, database.Missing(err, core.Errorf(core.CodeNotFound, "there is no user %s", id))
}

// SetOrgRole gives a user an organization role that takes precedence over the identity provider's. "" leaves
// the role to the provider again, from the next login on. The error is core.CodeNotFound if there is no such
// user, core.CodeInvalidInput for an unknown role, and core.CodeForbidden for the instance's owner.
func (s *Store) SetOrgRole(ctx context.Context, id string, role core.Role) error {
	if !slices.Contains([]core.Role{"", core.RoleOwner, core.RoleAdmin, core.RoleMember}, role) {
		return core.Errorf(core.CodeInvalidInput, "orgRole must be %s, %s or %s, or empty", core.RoleOwner, core.RoleAdmin, core.RoleMember)
	}
	if id == core.Owner().User.ID {
		return core.Errorf(core.CodeForbidden, "the instance's owner cannot have another role")
	}
	return s.changeMembers(ctx, "setting a user's role", "", of(id, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := findUser(ctx, tx, id); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE users SET given_role = $1 WHERE id = $2`, string(role), id)
		return err
	}))
}

// DeleteUser deletes a user with their logins, memberships, conversations and personal workspace. The usage of
// their calls in other workspaces is kept. If the identity provider still lets the person log in, they return as
// a new user. The error is core.CodeNotFound if there is no such user, and core.CodeForbidden for the instance's
// owner and while apps are installed in the personal workspace.
func (s *Store) DeleteUser(ctx context.Context, id string) error {
	if id == core.Owner().User.ID {
		return core.Errorf(core.CodeForbidden, "the instance's owner cannot be deleted")
	}
	return s.changeMembers(ctx, "deleting a user", "", of(id, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := findUser(ctx, tx, id); err != nil {
			return err
		}
		if err := s.unlink(ctx, tx, `owner = $1`, id); err != nil {
			return err
		}
		var personal string
		err := tx.QueryRowContext(ctx, `SELECT id FROM workspaces WHERE personal_of = $1`, id).Scan(&personal)
		if err == nil {
			err = s.deleteWorkspace(ctx, tx, personal)
		}
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM users WHERE id = $1`, id)
		return err
	}))
}

// newID returns prefix followed by 26 random letters and digits, which contain at least 128 random bits.
func newID(prefix string) string { return prefix + rand.Text() }
