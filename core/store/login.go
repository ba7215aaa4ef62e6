package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// maxLogins is how many browser logins may be under way; beyond it the oldest are forgotten.
const maxLogins = 10_000

// PutLogin keeps a browser login under way, by the hash of its state.
func (s *Store) PutLogin(ctx context.Context, state string, login json.RawMessage, expires time.Time) error {
	return s.change(ctx, "keeping a browser login", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM logins WHERE expires_at <= $1`, millis(time.Now())); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM logins WHERE state IN (SELECT state FROM logins ORDER BY expires_at DESC LIMIT $1 OFFSET $2)`,
			maxLogins, maxLogins-1); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO logins (state, record, expires_at) VALUES ($1, $2, $3)`, state, string(login), millis(expires))
		return err
	})
}

// TakeLogin returns a browser login under way and forgets it: of any number of takers one gets it.
// core.CodeNotFound when there is none, or it has expired.
func (s *Store) TakeLogin(ctx context.Context, state string) (json.RawMessage, error) {
	var record string
	err := s.change(ctx, "taking a browser login", func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, `DELETE FROM logins WHERE state = $1 AND expires_at > $2 RETURNING record`, state, millis(time.Now())).Scan(&record)
		if errors.Is(err, sql.ErrNoRows) {
			return core.Errorf(core.CodeNotFound, "there is no such login under way")
		}
		return err
	})
	return json.RawMessage(record), err
}
