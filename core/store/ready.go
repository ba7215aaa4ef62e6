package store

import (
	"context"
	"fmt"
	"time"
)

// CheckWritable writes to the database, and returns why that is not possible.
func (s *Store) CheckWritable(ctx context.Context) error {
	_, err := s.db.Exec(ctx, `INSERT INTO settings (name, value) VALUES ('server.readiness', $1)
		ON CONFLICT (name) DO UPDATE SET value = excluded.value`, time.Now().UTC().Format(time.RFC3339))
	if err != nil {
		return fmt.Errorf("the database cannot be written: %w", err)
	}
	return nil
}
