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

// revocationLife is how long a revocation is kept. It is longer than the longest session.
const revocationLife = 31 * 24 * time.Hour

// Revoke records that a subject or a token was revoked, deletes the logins of the subject, and notifies
// the other servers. It returns the user of the subject, "" when a token is meant or nobody is known by
// it. Call access.Access.Revoke, which calls it.
func (s *Store) Revoke(ctx context.Context, r core.Revocation) (userID string, err error) {
	now := time.Now()
	err = s.db.Update(ctx, "recording a revocation", func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM revocations WHERE revoked_at < $1`, database.Millis(now.Add(-revocationLife))); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `
			INSERT INTO revocations (issuer, subject, token, revoked_at) VALUES ($1, $2, $3, $4)
			ON CONFLICT (issuer, subject, token) DO UPDATE SET revoked_at = excluded.revoked_at`,
			r.Issuer, r.Subject, r.Token, database.Millis(now)); err != nil {
			return err
		}
		if r.Subject == "" {
			return s.notifyPeers(ctx, tx, core.ChangeToken, "", r.Token)
		}
		userID, err = endLogins(ctx, tx, r.Issuer, r.Subject)
		if err != nil || userID == "" {
			return err
		}
		return s.notifyPeers(ctx, tx, core.ChangeMembers, "", userID)
	})
	return userID, err
}

// endLogins deletes the logins of a subject, and returns its user; "" when there is none.
func endLogins(ctx context.Context, tx *sql.Tx, issuer, subject string) (userID string, err error) {
	err = tx.QueryRowContext(ctx, `SELECT id FROM users WHERE issuer = $1 AND subject = $2`, issuer, subject).Scan(&userID)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	if err == nil {
		_, err = tx.ExecContext(ctx, `DELETE FROM cookies WHERE user_id = $1`, userID)
	}
	return userID, err
}

// Revoked reports whether the subject or the token of an identity was revoked after it was
// authenticated.
func (s *Store) Revoked(ctx context.Context, id core.Identity) (bool, error) {
	var last sql.NullInt64
	err := s.db.Read(ctx, func(ctx context.Context, q database.Querier) error {
		return q.QueryRowContext(ctx, `
			SELECT MAX(revoked_at) FROM revocations WHERE issuer = $1 AND ((subject = $2 AND token = '') OR (subject = '' AND token = $3))`,
			id.Issuer, id.Subject, id.Token).Scan(&last)
	})
	if err != nil {
		return false, fmt.Errorf("reading revocations: %w", err)
	}
	return last.Valid && last.Int64 >= database.Millis(id.Since), nil
}
