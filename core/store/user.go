package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// Provision returns the user behind an identity. At first sight it makes the user and a personal
// workspace, in one transaction and once only, however many ask at a time; later it brings email,
// name and organization role up to date. An empty email or name replaces nothing: not every token
// carries them.
func (s *Store) Provision(ctx context.Context, id core.Identity) (core.User, error) {
	if id.Issuer == "" || id.Subject == "" {
		return core.User{}, errors.New("provisioning a user: the identity has no issuer or no subject")
	}
	kept, err := s.user(ctx, id.Issuer, id.Subject)
	switch {
	case err == nil && kept == updated(kept, id.User):
		return kept, nil
	case err != nil && !errors.Is(err, sql.ErrNoRows):
		return core.User{}, fmt.Errorf("looking up a user: %w", explain(err))
	}
	user := updated(core.User{ID: newID("usr_")}, id.User)
	err = s.change(ctx, "provisioning a user", func(tx *sql.Tx) error {
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

// updated is a user with what an identity says of it.
func updated(kept, said core.User) core.User {
	kept.Email = cmp.Or(said.Email, kept.Email)
	kept.DisplayName = cmp.Or(said.DisplayName, kept.DisplayName)
	kept.OrgRole = cmp.Or(said.OrgRole, core.RoleMember)
	return kept
}

func (s *Store) user(ctx context.Context, issuer, subject string) (core.User, error) {
	var u core.User
	err := s.read.QueryRowContext(ctx, `SELECT id, email, display_name, org_role FROM users WHERE issuer = $1 AND subject = $2`,
		issuer, subject).Scan(&u.ID, &u.Email, &u.DisplayName, &u.OrgRole)
	return u, err
}

func upsertUser(ctx context.Context, tx *sql.Tx, issuer, subject string, u core.User) (core.User, error) {
	err := tx.QueryRowContext(ctx, `
		INSERT INTO users (id, issuer, subject, email, display_name, org_role, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (issuer, subject) DO UPDATE SET
			email = COALESCE(NULLIF(excluded.email, ''), users.email),
			display_name = COALESCE(NULLIF(excluded.display_name, ''), users.display_name),
			org_role = excluded.org_role
		RETURNING id, email, display_name, org_role`,
		u.ID, issuer, subject, u.Email, u.DisplayName, string(u.OrgRole), millis(time.Now())).
		Scan(&u.ID, &u.Email, &u.DisplayName, &u.OrgRole)
	return u, err
}

// ensurePersonal gives a user a workspace of their own, unless they have one.
func ensurePersonal(ctx context.Context, tx *sql.Tx, u core.User) error {
	name := cmp.Or(u.DisplayName, u.Email, "Personal")
	if _, err := tx.ExecContext(ctx, `
		INSERT INTO workspaces (id, name, personal_of, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT (personal_of) DO NOTHING`,
		newID("ws_"), name, u.ID, millis(time.Now())); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `
		INSERT INTO members (workspace, user_id, role) SELECT id, personal_of, 'admin' FROM workspaces WHERE personal_of = $1
		ON CONFLICT (workspace, user_id) DO NOTHING`, u.ID)
	return err
}

// newID is a random id of letters and digits: 26 characters, 128 bits.
func newID(prefix string) string { return prefix + rand.Text() }
