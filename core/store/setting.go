package store

import (
	"context"
	"database/sql"
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
)

// Setting returns the value of one of the server's own settings, or core.CodeNotFound.
func (s *Store) Setting(ctx context.Context, name string) (string, error) {
	var value string
	err := s.db.Get(ctx, "reading setting "+name, `SELECT value FROM settings WHERE name = $1`, []any{name}, &value)
	return value, database.Missing(err, core.Errorf(core.CodeNotFound, "there is no setting %s", name))
}

// Settings returns the values of all settings with names that start with prefix, keyed by name.
func (s *Store) Settings(ctx context.Context, prefix string) (map[string]string, error) {
	found := map[string]string{}
	err := s.db.Select(ctx, "reading settings "+prefix, `SELECT name, value FROM settings WHERE substr(name, 1, $2) = $1`, []any{prefix, utf8.RuneCountInString(prefix)},
		func(row database.Row) error {
			var name, value string
			err := row.Scan(&name, &value)
			found[name] = value
			return err
		})
	return found, err
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
