package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
)

// maxUserLogins is how many logins are kept per user; if there are more, the oldest are deleted.
const maxUserLogins = 1000

// PutCookie stores a login, and deletes expired logins and those of the user beyond maxUserLogins. The login's identity must
// have been provisioned.
func (s *Store) PutCookie(ctx context.Context, c core.Cookie) error {
	return s.db.Update(ctx, "storing a login", func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM cookies WHERE expires_at <= $1`, database.Millis(time.Now())); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM cookies WHERE hash IN (SELECT hash FROM cookies WHERE user_id = $1 ORDER BY expires_at DESC LIMIT $2 OFFSET $3)`,
			c.Identity.User.ID, maxUserLogins, maxUserLogins-1); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO cookies (hash, user_id, key_print, expires_at, session, renewal, checked_at, issuer, subject) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
			c.Hash, c.Identity.User.ID, c.KeyPrint, database.Millis(c.ExpiresAt), c.Identity.Session, c.Renewal, database.Millis(c.CheckedAt), c.Identity.Issuer, c.Identity.Subject)
		return err
	})
}

// Cookie returns a login with the current data of its user. The error is core.CodeNotFound if there is no such login or it
// has expired.
func (s *Store) Cookie(ctx context.Context, hash string) (core.Cookie, error) {
	c := core.Cookie{Hash: hash}
	id, expires, checked := &c.Identity, int64(0), int64(0)
	err := s.db.Get(ctx, "looking up a login", `
		SELECT COALESCE(NULLIF(c.issuer, ''), u.issuer), COALESCE(NULLIF(c.subject, ''), u.subject), `+userColumns+`, c.key_print, c.expires_at, c.session, c.renewal, c.checked_at
		FROM cookies c JOIN users u ON u.id = c.user_id WHERE c.hash = $1 AND c.expires_at > $2`, []any{hash, database.Millis(time.Now())},
		slices.Concat([]any{&id.Issuer, &id.Subject}, userFields(&id.User), []any{&c.KeyPrint, &expires, &id.Session, &c.Renewal, &checked})...)
	c.ExpiresAt, c.CheckedAt = database.FromMillis(expires), database.FromMillis(checked)
	return c, database.Missing(err, core.Errorf(core.CodeNotFound, "no such login"))
}

// ClaimCheck reports whether the caller should check a login with the provider, because no other server has started to do so
// within the last pause, and none has completed a check since the login was read.
func (s *Store) ClaimCheck(ctx context.Context, c core.Cookie, pause time.Duration) (claimed bool, err error) {
	now := time.Now()
	err = s.db.Update(ctx, "claiming the check of a login", func(ctx context.Context, tx *sql.Tx) error {
		claimed, err = database.Changed(ctx, tx, `UPDATE cookies SET check_began = $1 WHERE hash = $2 AND checked_at = $3 AND check_began <= $4`,
			database.Millis(now), c.Hash, database.Millis(c.CheckedAt), database.Millis(now.Add(-pause)))
		return err
	})
	return claimed, err
}

// CookieChecked records that the provider has confirmed a login, with the renewal and the session of c.
func (s *Store) CookieChecked(ctx context.Context, c core.Cookie) error {
	return s.db.Exec(ctx, "recording the check of a login", `UPDATE cookies SET renewal = $1, session = $2, checked_at = $3 WHERE hash = $4`,
		c.Renewal, c.Identity.Session, database.Millis(c.CheckedAt), c.Hash)
}

// DeleteCookie ends a login, on all servers. It is not an error if there is no such login.
func (s *Store) DeleteCookie(ctx context.Context, hash string) error {
	return s.changeMembers(ctx, "ending a login", "", func(ctx context.Context, tx *sql.Tx) ([]string, error) {
		var user string
		err := tx.QueryRowContext(ctx, `DELETE FROM cookies WHERE hash = $1 RETURNING user_id`, hash).Scan(&user)
		if errors.Is(err, sql.ErrNoRows) {
			return nil, nil
		}
		return []string{user}, err
	})
}

// EndLogins ends all logins that were made with a SERVICE_API_KEY other than the one that keyPrint identifies.
func (s *Store) EndLogins(ctx context.Context, keyPrint string) error {
	return s.db.Exec(ctx, "ending the logins of another key", `DELETE FROM cookies WHERE key_print <> $1`, keyPrint)
}
