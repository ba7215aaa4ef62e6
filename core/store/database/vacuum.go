package database

import (
	"context"
	"fmt"
)

// An SQLite file is compacted when more than this share of it, and more than so many bytes, are unused.
const (
	vacuumShare = 0.25
	vacuumBytes = 16 << 20
)

// Vacuum makes an SQLite file smaller when much of it is unused. Writes wait meanwhile. It does nothing with
// PostgreSQL, which vacuums by itself.
func (db *Database) Vacuum(ctx context.Context) error {
	if db.kind != SQLite {
		return nil
	}
	var pages, free, size int64
	for pragma, value := range map[string]*int64{"page_count": &pages, "freelist_count": &free, "page_size": &size} {
		if err := db.write.QueryRowContext(ctx, "PRAGMA "+pragma).Scan(value); err != nil {
			return fmt.Errorf("reading %s: %w", pragma, Explain(err))
		}
	}
	if free*size < vacuumBytes || float64(free) < vacuumShare*float64(pages) {
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
