package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/ropewalk/ropewalk/core"
)

// Setting returns what the server itself has kept under a name; core.CodeNotFound when nothing.
func (s *Store) Setting(ctx context.Context, name string) (string, error) {
	var value string
	err := s.read.QueryRowContext(ctx, `SELECT value FROM settings WHERE name = $1`, name).Scan(&value)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", core.Errorf(core.CodeNotFound, "nothing is kept under %s", name)
	case err != nil:
		return "", fmt.Errorf("reading setting %s: %w", name, explain(err))
	}
	return value, nil
}

// PutSetting keeps a value under a name.
func (s *Store) PutSetting(ctx context.Context, name, value string) error {
	return s.change(ctx, "keeping setting "+name, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `
			INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value`, name, value); err != nil {
			return err
		}
		return s.note(ctx, tx, core.ChangeSetting, "", name)
	})
}
