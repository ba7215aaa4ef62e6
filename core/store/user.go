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
// name and organization role. An empty email or name replaces nothing: not every token has them. A role
// in the organization that was given here (SetOrgRole) takes precedence over the identity's.
func (s *Store) Provision(ctx context.Context, id core.Identity) (core.User, error) {
	if id.Issuer == "" || id.Subject == "" {
		return core.User{}, errors.New("provisioning a user: the identity has no issuer or no subject")
	}
	kept, given, err := s.user(ctx, id.Issuer, id.Subject)
	switch {
	case err == nil && kept == updated(kept, id.User, given):
		return kept, nil
	case err != nil && !errors.Is(err, sql.ErrNoRows):
		return core.User{}, fmt.Errorf("looking up a user: %w", err)
	}
	user := updated(core.User{ID: newID("usr_")}, id.User, "")
	err = s.db.Update(ctx, "provisioning a user", func(ctx context.Context, tx *sql.Tx) error {
		user, err = upsertUser(ctx, tx, id.Issuer, id.Subject, user)
		if err != nil || id.Issuer == core.IssuerLocal {
			return err
		}
		return ensurePersonal(ctx, tx, user)
	})
	if err != nil {
		return core.User{}, err
	}
	return user, nil
}

// updated is a stored user with what an identity says, and with the role that was given here.
func updated(stored, identity core.User, given core.Role) core.User {
	stored.Email = cmp.Or(identity.Email, stored.Email)
	stored.DisplayName = cmp.Or(identity.DisplayName, stored.DisplayName)
	stored.OrgRole = cmp.Or(given, identity.OrgRole, core.RoleMember)
	return stored
}

// userColumns selects a user u: id, email, display name and the effective role in the organization.
const userColumns = `u.id, u.email, u.display_name, COALESCE(NULLIF(u.given_role, ''), u.org_role)`

func (s *Store) user(ctx context.Context, issuer, subject string) (u core.User, given core.Role, err error) {
	err = s.db.Get(ctx, `SELECT `+userColumns+`, u.given_role FROM users u WHERE u.issuer = $1 AND u.subject = $2`, []any{issuer, subject}, &u.ID, &u.Email, &u.DisplayName, &u.OrgRole, &given)
	return u, given, err
}

func upsertUser(ctx context.Context, tx *sql.Tx, issuer, subject string, u core.User) (core.User, error) {
	err := tx.QueryRowContext(ctx, `
		INSERT INTO users (id, issuer, subject, email, display_name, org_role, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (issuer, subject) DO UPDATE SET
			email = COALESCE(NULLIF(excluded.email, ''), users.email),
			display_name = COALESCE(NULLIF(excluded.display_name, ''), users.display_name),
			org_role = excluded.org_role
		RETURNING `+strings.ReplaceAll(userColumns, "u.", ""),
		u.ID, issuer, subject, u.Email, u.DisplayName, string(u.OrgRole), database.Millis(time.Now())).
		Scan(&u.ID, &u.Email, &u.DisplayName, &u.OrgRole)
	return u, err
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

// Users returns everybody the server knows, by name.
func (s *Store) Users(ctx context.Context) ([]core.User, error) {
	all := []core.User{}
	err := s.db.View(ctx, "reading the users", func(ctx context.Context, tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT `+userColumns+` FROM users u ORDER BY u.display_name, u.email, u.id`)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var u core.User
			if err := rows.Scan(&u.ID, &u.Email, &u.DisplayName, &u.OrgRole); err != nil {
				return err
			}
			all = append(all, u)
		}
		return rows.Err()
	})
	return all, err
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
	err := q.QueryRowContext(ctx, `SELECT `+userColumns+` FROM users u WHERE u.id = $1`, id).Scan(&u.ID, &u.Email, &u.DisplayName, &u.OrgRole)
	if errors.Is(err, sql.ErrNoRows) {
		err = core.Errorf(core.CodeNotFound, "there is no user %s", id)
	}
	return u, err
}

// SetOrgRole gives a user a role in the organization that counts more than what the identity provider
// says; "" leaves it to the provider again, from the next login on. core.CodeNotFound when there is
// no such user, core.CodeInvalidInput for a role that is none, core.CodeForbidden for the instance's
// owner. Call access.Access.MembersChanged afterwards.
func (s *Store) SetOrgRole(ctx context.Context, id string, role core.Role) error {
	if !slices.Contains([]core.Role{"", core.RoleOwner, core.RoleAdmin, core.RoleMember}, role) {
		return core.Errorf(core.CodeInvalidInput, "orgRole: must be %s, %s or %s, or empty", core.RoleOwner, core.RoleAdmin, core.RoleMember)
	}
	if id == core.Owner().User.ID {
		return core.Errorf(core.CodeForbidden, "the instance's owner stays its owner")
	}
	return s.db.Update(ctx, "giving a user a role", func(ctx context.Context, tx *sql.Tx) error {
		if _, err := findUser(ctx, tx, id); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE users SET given_role = $1 WHERE id = $2`, string(role), id); err != nil {
			return err
		}
		return s.notifyPeers(ctx, tx, core.ChangeMembers, "", id)
	})
}

// DeleteUser deletes a user with the logins, memberships, conversations and the personal workspace; what
// the user's calls used stays in the usage of other workspaces. A user whom the identity provider still
// lets in comes back as a new one. core.CodeNotFound when there is no such user,
// core.CodeForbidden for the instance's owner and while apps are installed in the personal workspace.
// Call access.Access.MembersChanged afterwards.
func (s *Store) DeleteUser(ctx context.Context, id string) error {
	if id == core.Owner().User.ID {
		return core.Errorf(core.CodeForbidden, "the instance's owner cannot be deleted")
	}
	return s.db.Update(ctx, "deleting a user", func(ctx context.Context, tx *sql.Tx) error {
		if _, err := findUser(ctx, tx, id); err != nil {
			return err
		}
		var personal string
		err := tx.QueryRowContext(ctx, `SELECT id FROM workspaces WHERE personal_of = $1`, id).Scan(&personal)
		if err == nil {
			err = deleteWorkspace(ctx, tx, personal)
		}
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM users WHERE id = $1`, id); err != nil {
			return err
		}
		return s.notifyPeers(ctx, tx, core.ChangeMembers, "", id)
	})
}

// newID is a random id of letters and digits: 26 characters, 128 bits.
func newID(prefix string) string { return prefix + rand.Text() }
