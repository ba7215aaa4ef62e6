package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// Cookie is one login. The token itself is never stored, only its hash.
type Cookie struct {
	Hash      string // hex sha256 of the token
	Identity  core.Identity
	KeyPrint  string // fingerprint of the API key it was bought with; "" for a provider's login
	ExpiresAt time.Time
}

// PutCookie keeps a login, and forgets those that have expired. Its identity must have been
// provisioned.
func (s *Store) PutCookie(ctx context.Context, c Cookie) error {
	return s.change(ctx, "keeping a login", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM cookies WHERE expires_at <= $1`, millis(time.Now())); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO cookies (hash, user_id, key_print, expires_at) VALUES ($1, $2, $3, $4)`,
			c.Hash, c.Identity.User.ID, c.KeyPrint, millis(c.ExpiresAt))
		return err
	})
}

// Cookie returns a login that has not expired, with its user as of now; core.CodeNotFound else.
func (s *Store) Cookie(ctx context.Context, hash string) (Cookie, error) {
	c := Cookie{Hash: hash}
	id, expires := &c.Identity, int64(0)
	err := s.read.QueryRowContext(ctx, `
		SELECT u.issuer, u.subject, `+userColumns+`, c.key_print, c.expires_at
		FROM cookies c JOIN users u ON u.id = c.user_id WHERE c.hash = $1 AND c.expires_at > $2`, hash, millis(time.Now())).
		Scan(&id.Issuer, &id.Subject, &id.User.ID, &id.User.Email, &id.User.DisplayName, &id.User.OrgRole, &c.KeyPrint, &expires)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Cookie{}, core.Errorf(core.CodeNotFound, "no such login")
	case err != nil:
		return Cookie{}, fmt.Errorf("looking up a login: %w", explain(err))
	}
	c.ExpiresAt = fromMillis(expires)
	return c, nil
}

// DeleteCookie ends a login. Ending one that is not there is not an error.
func (s *Store) DeleteCookie(ctx context.Context, hash string) error {
	if _, err := s.write.ExecContext(ctx, `DELETE FROM cookies WHERE hash = $1`, hash); err != nil {
		return fmt.Errorf("ending a login: %w", explain(err))
	}
	return nil
}

// EndLogins ends all logins but those that were bought with the API key that keyPrint names.
func (s *Store) EndLogins(ctx context.Context, keyPrint string) error {
	if _, err := s.write.ExecContext(ctx, `DELETE FROM cookies WHERE key_print <> $1`, keyPrint); err != nil {
		return fmt.Errorf("ending the logins of another key: %w", explain(err))
	}
	return nil
}
