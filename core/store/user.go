package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
)

// Provision returns the user behind an identity. The first time it creates the user and a personal
// workspace, in one transaction and only once, however many callers there are; later it updates email,
// name, organization role and AdminBy. An empty email or name replaces nothing: not every token has them. A role
// in the organization that was given here (SetOrgRole) takes precedence over the identity's, and AdminBy over both.
// An identity that is seen for the first time is linked to a user whom an issuer of sameAs knows by the same email.
func (s *Store) Provision(ctx context.Context, id core.Identity, sameAs []string) (core.User, error) {
	if id.Issuer == "" || id.Subject == "" {
		return core.User{}, errors.New("provisioning a user: the identity has no issuer or no subject")
	}
	stored, effective, err := s.user(ctx, id.Issuer, id.Subject)
	switch {
	case err == nil && stored == updated(stored, id.User):
		return effective, nil
	case err != nil && !errors.Is(err, sql.ErrNoRows):
		return core.User{}, fmt.Errorf("looking up a user: %w", err)
	}
	user := updated(core.User{ID: newID("usr_")}, id.User)
	err = s.changeMembers(ctx, "provisioning a user", "", func(ctx context.Context, tx *sql.Tx) (changed []string, err error) {
		if id.User.AdminBy != "" { // where admins were named once, nobody becomes the first one
			if _, err := claimFirstAdmin(ctx, tx, ""); err != nil {
				return nil, err
			}
		}
		first, linked, err := s.firstIdentity(ctx, tx, id, sameAs)
		if err != nil {
			return nil, err
		}
		user, err = upsertUser(ctx, tx, first.Issuer, first.Subject, user)
		if linked { // the user's API keys are good again
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

// updated is a stored user with what an identity says.
func updated(stored, identity core.User) core.User {
	stored.Email = cmp.Or(identity.Email, stored.Email)
	stored.DisplayName = cmp.Or(identity.DisplayName, stored.DisplayName)
	stored.OrgRole, stored.AdminBy = cmp.Or(identity.OrgRole, core.RoleMember), identity.AdminBy
	return stored
}

const (
	// ownRole is the role in the organization of a user u without auth.admins.
	ownRole = `COALESCE(NULLIF(u.given_role, ''), u.org_role)`

	// orgRole is the effective role.
	orgRole = `CASE WHEN u.admin_by <> '' AND ` + ownRole + ` NOT IN ('owner', 'admin') THEN 'admin' ELSE ` + ownRole + ` END`

	// userColumns selects a user u into userFields.
	userColumns = `u.id, u.email, u.display_name, ` + orgRole + `, CASE WHEN ` + ownRole + ` IN ('owner', 'admin') THEN '' ELSE u.admin_by END, u.group_roles`
)

func userFields(u *core.User) []any {
	return []any{&u.ID, &u.Email, &u.DisplayName, &u.OrgRole, &u.AdminBy, &u.GroupRoles}
}

// user returns the user of an identity as stored, and with the effective role.
func (s *Store) user(ctx context.Context, issuer, subject string) (stored, effective core.User, err error) {
	err = s.db.Get(ctx, `SELECT `+userColumns+`, u.org_role, u.admin_by FROM users u WHERE u.id = `+userOf, []any{issuer, subject},
		append(userFields(&effective), &stored.OrgRole, &stored.AdminBy)...)
	stored.ID, stored.Email, stored.DisplayName, stored.GroupRoles = effective.ID, effective.Email, effective.DisplayName, effective.GroupRoles
	return stored, effective, err
}

func upsertUser(ctx context.Context, tx *sql.Tx, issuer, subject string, u core.User) (core.User, error) {
	err := tx.QueryRowContext(ctx, `
		INSERT INTO users (id, issuer, subject, email, display_name, org_role, admin_by, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (issuer, subject) DO UPDATE SET
			email = COALESCE(NULLIF(excluded.email, ''), users.email),
			display_name = COALESCE(NULLIF(excluded.display_name, ''), users.display_name),
			org_role = excluded.org_role, admin_by = excluded.admin_by
		RETURNING `+strings.ReplaceAll(userColumns, "u.", ""),
		u.ID, issuer, subject, u.Email, u.DisplayName, string(u.OrgRole), u.AdminBy, database.Millis(time.Now())).
		Scan(userFields(&u)...)
	return u, err
}

// RetainAdmins leaves only those users admins by auth.admins whose AdminBy is listed, on all servers. Call
// access.Access.MembersChanged afterwards.
func (s *Store) RetainAdmins(ctx context.Context, listed []string) error {
	var reasons []string
	err := s.db.Select(ctx, `SELECT DISTINCT admin_by FROM users WHERE admin_by <> ''`, nil, func(scan func(...any) error) error {
		var reason string
		err := scan(&reason)
		reasons = append(reasons, reason)
		return err
	})
	if err != nil {
		return fmt.Errorf("reading the admins: %w", err)
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

// ensurePersonal creates the personal workspace of a user, unless it exists.
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

// User returns one of them; core.CodeNotFound when there is none of this id.
func (s *Store) User(ctx context.Context, id string) (core.User, error) {
	var u core.User
	err := s.db.Read(ctx, func(ctx context.Context, q database.Querier) (err error) {
		u, err = findUser(ctx, q, id)
		return err
	})
	if err != nil {
		return core.User{}, fmt.Errorf("reading a user: %w", err)
	}
	return u, nil
}

func findUser(ctx context.Context, q database.Querier, id string) (core.User, error) {
	var u core.User
	err := q.QueryRowContext(ctx, `SELECT `+userColumns+` FROM users u WHERE u.id = $1`, id).Scan(userFields(&u)...)
	if errors.Is(err, sql.ErrNoRows) {
		err = core.Errorf(core.CodeNotFound, "there is no user %s", id)
	}
	return u, err
}

// SetOrgRole gives a user a role in the organization that counts more than what the identity provider
// says; "" leaves it to the provider again, from the next login on. core.CodeNotFound when there is
// no such user, core.CodeInvalidInput for a role that is none, core.CodeForbidden for the instance's
// owner.
func (s *Store) SetOrgRole(ctx context.Context, id string, role core.Role) error {
	if !slices.Contains([]core.Role{"", core.RoleOwner, core.RoleAdmin, core.RoleMember}, role) {
		return core.Errorf(core.CodeInvalidInput, "orgRole: must be %s, %s or %s, or empty", core.RoleOwner, core.RoleAdmin, core.RoleMember)
	}
	if id == core.Owner().User.ID {
		return core.Errorf(core.CodeForbidden, "the instance's owner stays its owner")
	}
	return s.changeMembers(ctx, "giving a user a role", "", of(id, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := findUser(ctx, tx, id); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE users SET given_role = $1 WHERE id = $2`, string(role), id)
		return err
	}))
}

// DeleteUser deletes a user with the logins, memberships, conversations and the personal workspace; what
// the user's calls used stays in the usage of other workspaces. A user whom the identity provider still
// lets in comes back as a new one. core.CodeNotFound when there is no such user,
// core.CodeForbidden for the instance's owner and while apps are installed in the personal workspace.
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

// newID is a random id of letters and digits: 26 characters, 128 bits.
func newID(prefix string) string { return prefix + rand.Text() }
