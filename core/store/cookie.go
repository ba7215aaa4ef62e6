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

// Cookie is one login. The token itself is never stored, only its hash.
type Cookie struct {
	Hash      string // hex sha256 of the token
	Identity  core.Identity
	KeyPrint  string // fingerprint of the API key it was made with; "" for a login through an identity provider
	ExpiresAt time.Time

	Renewal   string    // encrypted: what is needed to ask the provider again; "" when it cannot be asked
	CheckedAt time.Time // when the provider was asked last
}

// PutCookie stores a login, and deletes those that have expired. Its identity must have been provisioned.
func (s *Store) PutCookie(ctx context.Context, c Cookie) error {
	return s.db.Update(ctx, "storing a login", func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM cookies WHERE expires_at <= $1`, database.Millis(time.Now())); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO cookies (hash, user_id, key_print, expires_at, session, renewal, checked_at) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			c.Hash, c.Identity.User.ID, c.KeyPrint, database.Millis(c.ExpiresAt), c.Identity.Session, c.Renewal, database.Millis(c.CheckedAt))
		return err
	})
}

// Cookie returns a login that has not expired, with its user as of now; core.CodeNotFound otherwise.
func (s *Store) Cookie(ctx context.Context, hash string) (Cookie, error) {
	c := Cookie{Hash: hash}
	id, expires, checked := &c.Identity, int64(0), int64(0)
	err := s.db.Get(ctx, `
		SELECT u.issuer, u.subject, `+userColumns+`, c.key_print, c.expires_at, c.session, c.renewal, c.checked_at
		FROM cookies c JOIN users u ON u.id = c.user_id WHERE c.hash = $1 AND c.expires_at > $2`, []any{hash, database.Millis(time.Now())},
		&id.Issuer, &id.Subject, &id.User.ID, &id.User.Email, &id.User.DisplayName, &id.User.OrgRole, &c.KeyPrint, &expires, &id.Session, &c.Renewal, &checked)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Cookie{}, core.Errorf(core.CodeNotFound, "no such login")
	case err != nil:
		return Cookie{}, fmt.Errorf("looking up a login: %w", err)
	}
	c.ExpiresAt, c.CheckedAt = database.FromMillis(expires), database.FromMillis(checked)
	return c, nil
}

// ClaimCheck reports whether the caller is to ask the provider about a login: no other server began to in the
// last pause, and none has asked since the login was read.
func (s *Store) ClaimCheck(ctx context.Context, c Cookie, pause time.Duration) (claimed bool, err error) {
	now := time.Now()
	err = s.db.Update(ctx, "claiming the check of a login", func(ctx context.Context, tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, `UPDATE cookies SET check_began = $1 WHERE hash = $2 AND checked_at = $3 AND check_began <= $4`,
			database.Millis(now), c.Hash, database.Millis(c.CheckedAt), database.Millis(now.Add(-pause)))
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		claimed = n > 0
		return err
	})
	return claimed, err
}

// CookieChecked records that the provider confirmed a login, with the renewal and the session of c.
func (s *Store) CookieChecked(ctx context.Context, c Cookie) error {
	_, err := s.db.Exec(ctx, `UPDATE cookies SET renewal = $1, session = $2, checked_at = $3 WHERE hash = $4`,
		c.Renewal, c.Identity.Session, database.Millis(c.CheckedAt), c.Hash)
	if err != nil {
		return fmt.Errorf("recording the check of a login: %w", err)
	}
	return nil
}

// DeleteCookie ends a login, on all servers, and returns whose it was: "" when there was none.
func (s *Store) DeleteCookie(ctx context.Context, hash string) (userID string, err error) {
	err = s.db.Update(ctx, "ending a login", func(ctx context.Context, tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, `DELETE FROM cookies WHERE hash = $1 RETURNING user_id`, hash).Scan(&userID)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		return s.notifyPeers(ctx, tx, core.ChangeMembers, "", userID)
	})
	return userID, err
}

// EndLogins ends all logins except those made with the API key that keyPrint names.
func (s *Store) EndLogins(ctx context.Context, keyPrint string) error {
	if _, err := s.db.Exec(ctx, `DELETE FROM cookies WHERE key_print <> $1`, keyPrint); err != nil {
		return fmt.Errorf("ending the logins of another key: %w", err)
	}
	return nil
}
