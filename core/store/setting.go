package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"unicode/utf8"

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

// Settings is what is kept under names that begin with prefix, by name.
func (s *Store) Settings(ctx context.Context, prefix string) (map[string]string, error) {
	found := map[string]string{}
	rows, err := s.read.QueryContext(ctx, `SELECT name, value FROM settings WHERE substr(name, 1, $2) = $1`, prefix, utf8.RuneCountInString(prefix))
	if err != nil {
		return nil, fmt.Errorf("reading settings %s: %w", prefix, explain(err))
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, fmt.Errorf("reading settings %s: %w", prefix, explain(err))
		}
		found[name] = value
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("reading settings %s: %w", prefix, explain(err))
	}
	return found, nil
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
