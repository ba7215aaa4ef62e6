package database

import (
	"context"
	"fmt"
)

// An SQLite file is compacted when more than vacuumShare of it and more than vacuumBytes are unused.
const (
	vacuumShare = 0.25
	vacuumBytes = 16 << 20
)

// Vacuum shrinks an SQLite file if much of it is unused. Writes wait until it is done. It does nothing for
// PostgreSQL, which vacuums on its own.
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

// Rewrite rewrites a table, so that its earlier content is no longer in any file of the database. An SQLite
// file is rewritten as a whole, with its log. The write-ahead log of PostgreSQL may keep the content for longer.
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
