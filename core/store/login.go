package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
	"github.com/ropewalk/ropewalk/core/store/seal"
)

// maxLogins is the maximum number of pending browser logins; beyond it the oldest are deleted.
const maxLogins = 10_000

// PutLogin stores a pending browser login, under the hash of its state.
func (s *Store) PutLogin(ctx context.Context, state string, login json.RawMessage, expires time.Time) error {
	return s.db.Update(ctx, "storing a browser login", func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM logins WHERE expires_at <= $1`, database.Millis(time.Now())); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM logins WHERE state IN (SELECT state FROM logins ORDER BY expires_at DESC LIMIT $1 OFFSET $2)`,
			maxLogins, maxLogins-1); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO logins (state, record, expires_at) VALUES ($1, $2, $3)`, state, s.keys.Load().Seal(login, seal.AboutLogin(state)), database.Millis(expires))
		return err
	})
}

// TakeLogin returns a pending browser login and deletes it, so only one of several concurrent callers gets it.
// The error is core.CodeNotFound if there is no such login or it has expired.
func (s *Store) TakeLogin(ctx context.Context, state string) (json.RawMessage, error) {
	var record string
	err := s.db.Update(ctx, "taking a browser login", func(ctx context.Context, tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, `DELETE FROM logins WHERE state = $1 AND expires_at > $2 RETURNING record`, state, database.Millis(time.Now())).Scan(&record)
		return database.Missing(err, core.Errorf(core.CodeNotFound, "no such login in progress"))
	})
	if err != nil {
		return nil, err
	}
	return s.keys.Load().Open(record, seal.AboutLogin(state))
}
