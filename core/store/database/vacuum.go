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

// Rewrite writes a table anew, so that what it contained before is in no file of the database any more:
// an SQLite file as a whole, with its log. In PostgreSQL the log of the server may keep it for longer.
func (db *Database) Rewrite(ctx context.Context, table string) error {
	statements := []string{`VACUUM`, `PRAGMA wal_checkpoint(TRUNCATE)`}
	if db.kind == PostgreSQL {
		statements = []string{`VACUUM FULL ` + table}
	}
	for _, statement := range statements {
		if _, err := db.write.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("rewriting %s: %w", table, Explain(err))
		}
	}
	return nil
}
