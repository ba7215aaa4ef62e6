package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
)

// revocationLife is how long a revocation is kept, which is longer than the longest session.
const revocationLife = 31 * 24 * time.Hour

// Revoke records a revocation, deletes the logins that depend on what was revoked, and notifies the other servers. The
// error is core.CodeConflict if r.Once was used before. Call access.Access.Revoke instead, which also updates the
// caches of this server.
func (s *Store) Revoke(ctx context.Context, r core.Revocation) error {
	now := time.Now()
	return s.changeMembers(ctx, "recording a revocation", "", func(ctx context.Context, tx *sql.Tx) ([]string, error) {
		if err := useOnce(ctx, tx, r, now); err != nil {
			return nil, err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM revocations WHERE revoked_at < $1`, database.Millis(now.Add(-revocationLife))); err != nil {
			return nil, err
		}
		if _, err := tx.ExecContext(ctx, `
			INSERT INTO revocations (issuer, subject, token, revoked_at) VALUES ($1, $2, $3, $4)
			ON CONFLICT (issuer, subject, token) DO UPDATE SET revoked_at = excluded.revoked_at`,
			r.Issuer, r.Subject, r.Token+r.Session, database.Millis(now)); err != nil {
			return nil, err
		}
		users, err := endLogins(ctx, tx, r)
		if err == nil && r.Subject == "" {
			err = s.notifyPeers(ctx, tx, core.ChangeToken, "", r.Token+r.Session)
		}
		return users, err
	})
}

// useOnce records that a revocation's message was used, or returns core.CodeConflict if it was used before.
func useOnce(ctx context.Context, tx *sql.Tx, r core.Revocation, now time.Time) error {
	if r.Once == "" {
		return nil
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM used_messages WHERE expires_at < $1`, database.Millis(now)); err != nil {
		return err
	}
	return database.Change(ctx, tx, core.Errorf(core.CodeConflict, "the message has already been used"),
		`INSERT INTO used_messages (id, expires_at) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING`, r.Once, database.Millis(r.Expires))
}

// endLogins deletes the logins that depend on what was revoked. It returns the ids of their users and of the subject's
// user.
func endLogins(ctx context.Context, tx *sql.Tx, r core.Revocation) (users []string, err error) {
	if r.Subject == "" && r.Session == "" {
		return nil, nil
	}
	if r.Subject == "" {
		return database.Collect(ctx, tx, `DELETE FROM cookies WHERE session = $1 RETURNING user_id`, []any{r.Session}, func(row database.Row) (user string, err error) {
			err = row.Scan(&user)
			return user, err
		})
	}
	var user sql.NullString
	err = tx.QueryRowContext(ctx, `SELECT `+userOf, r.Issuer, r.Subject).Scan(&user)
	if err != nil || !user.Valid {
		return nil, err
	}
	_, err = tx.ExecContext(ctx, `DELETE FROM cookies WHERE user_id = $1 AND ($2 = '' OR session IN ('', $2)) AND (issuer = '' OR (issuer = $3 AND subject = $4))`,
		user.String, r.Session, r.Issuer, r.Subject)
	return []string{user.String}, err
}

// Revoked reports whether an identity's subject, token or session was revoked after the identity was authenticated, or
// after its token was issued.
func (s *Store) Revoked(ctx context.Context, id core.Identity) (bool, error) {
	var last sql.NullInt64
	if err := s.db.Get(ctx, "reading revocations", `
		SELECT MAX(revoked_at) FROM revocations WHERE issuer = $1 AND (
			(subject = $2 AND (token = '' OR token = $4 OR $4 = '')) OR (subject = '' AND token IN ($3, $4) AND token <> ''))`,
		[]any{id.Issuer, id.Subject, id.Token, id.Session}, &last); err != nil {
		return false, err
	}
	since := id.Since
	if !id.Issued.IsZero() && id.Issued.Before(since) {
		since = id.Issued
	}
	return last.Valid && last.Int64 >= database.Millis(since), nil
}
