package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// Replace implements sessionstore.Replacer, in one transaction that locks the row.
func (s *Store) Replace(ctx context.Context, rec sessionstore.Record, ttl time.Duration, owner string) (bool, error) {
	if err := sessionstore.CheckReplace(rec, ttl); err != nil {
		return false, err
	}
	if !storable(rec.ID) {
		return false, fmt.Errorf("session: %w", plugins.ErrNotFound)
	}
	body, err := json.Marshal(rec)
	if err != nil {
		return false, err
	}
	lifetime := int64(0)
	if ttl > 0 {
		lifetime = micros(ttl)
	}
	replaced := false
	err = s.bounded(ctx, func(ctx context.Context) error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			var now []byte
			if err := tx.QueryRow(ctx, s.sql.lock, rec.ID).Scan(&now); err != nil {
				return err
			}
			var held sessionstore.Record
			if err := json.Unmarshal(now, &held); err != nil || held.Owner != owner {
				return err
			}
			replaced = true
			_, err := tx.Exec(ctx, s.sql.replace, rec.ID, body, rec.LastAccessedAt, lifetime)
			return err
		})
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return false, fmt.Errorf("session: %w", plugins.ErrNotFound)
	}
	return replaced && err == nil, err
}
