package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/core"
)

// Setting returns the value of one of the server's own settings, or core.CodeNotFound.
func (s *Store) Setting(ctx context.Context, name string) (string, error) {
	var value string
	err := s.db.Get(ctx, `SELECT value FROM settings WHERE name = $1`, []any{name}, &value)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", core.Errorf(core.CodeNotFound, "no setting %s", name)
	case err != nil:
		return "", fmt.Errorf("reading setting %s: %w", name, err)
	}
	return value, nil
}

// Settings returns the values of all settings with names that start with prefix, keyed by name.
func (s *Store) Settings(ctx context.Context, prefix string) (map[string]string, error) {
	found := map[string]string{}
	err := s.db.Select(ctx, `SELECT name, value FROM settings WHERE substr(name, 1, $2) = $1`, []any{prefix, utf8.RuneCountInString(prefix)},
		func(scan func(...any) error) error {
			var name, value string
			err := scan(&name, &value)
			found[name] = value
			return err
		})
	if err != nil {
		return nil, fmt.Errorf("reading settings %s: %w", prefix, err)
	}
	return found, nil
}

// PutSetting stores the value of a setting.
func (s *Store) PutSetting(ctx context.Context, name, value string) error {
	return s.db.Update(ctx, "storing setting "+name, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `
			INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value`, name, value); err != nil {
			return err
		}
		return s.notifyPeers(ctx, tx, core.ChangeSetting, "", name)
	})
}
