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

// maxLogins is the maximum number of pending browser logins; if there are more, the oldest login of the client with the most
// logins is deleted.
const maxLogins = 10_000

// PutLogin stores a pending browser login, under the hash of its state. client identifies who started the login: an
// address or a user.
func (s *Store) PutLogin(ctx context.Context, state, client string, login json.RawMessage, expires time.Time) error {
	return s.db.Update(ctx, "storing a browser login", func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM logins WHERE expires_at <= $1`, database.Millis(time.Now())); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM logins WHERE (SELECT COUNT(*) FROM logins) >= CAST($1 AS BIGINT) AND state IN (
			SELECT state FROM logins WHERE client = (SELECT client FROM logins GROUP BY client ORDER BY COUNT(*) DESC, MIN(expires_at) LIMIT 1)
			ORDER BY expires_at LIMIT 1)`, maxLogins); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO logins (state, client, record, expires_at) VALUES ($1, $2, $3, $4)`,
			state, client, s.keys.Load().Seal(login, seal.AboutLogin(state)), database.Millis(expires))
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
