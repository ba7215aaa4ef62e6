package database

import (
	"context"
	"fmt"
)

// Vacuum makes an SQLite file smaller when more than a share of it, and more than a number of bytes, are
// unused. Writes wait meanwhile. It does nothing with PostgreSQL, which vacuums by itself.
func (db *Database) Vacuum(ctx context.Context, share float64, bytes int64) error {
	if db.kind != SQLite {
		return nil
	}
	var pages, free, size int64
	for pragma, value := range map[string]*int64{"page_count": &pages, "freelist_count": &free, "page_size": &size} {
		if err := db.write.QueryRowContext(ctx, "PRAGMA "+pragma).Scan(value); err != nil {
			return fmt.Errorf("reading %s: %w", pragma, Explain(err))
		}
	}
	if free*size < bytes || float64(free) < share*float64(pages) {
		return nil
	}
	if _, err := db.write.ExecContext(ctx, `VACUUM`); err != nil {
		return fmt.Errorf("compacting the file: %w", Explain(err))
	}
	return nil
}
