package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/pressly/goose/v3"
)

// This file is what backup and restore share. A backup is an SQLite file whatever the state is kept
// in, so that it also brings a state from one to the other.

// tables are all that a backup holds, each after those it refers to.
func tables() []string {
	return []string{
		"users", "workspaces", "members", "bundles", "bundle_parts", "installations", "cookies", "settings",
		"shelves", "conversations", "messages", "words", "packed_words", "usage_records",
	}
}

// copier is how a file is written that nothing else has open and that is thrown away when something
// fails: without the care that a running state needs.
func copier() use {
	return use{connections: 1, txlock: "deferred", pragmas: []string{"journal_mode(DELETE)", "synchronous(OFF)", "foreign_keys(0)"}}
}

// copyAll copies every row of every table.
func copyAll(ctx context.Context, from, to *sql.Tx) error {
	for _, table := range tables() {
		if err := copyTable(ctx, from, to, table); err != nil {
			return fmt.Errorf("copying the %s: %w", table, explain(err))
		}
	}
	return nil
}

const maxTogetherBytes = 8 << 20 // of large values that are copied with one statement

func copyTable(ctx context.Context, from, to *sql.Tx, table string) error {
	rows, err := from.QueryContext(ctx, `SELECT * FROM `+table)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	size := 0
	batch := inserting{into: `INSERT INTO ` + table + ` (` + strings.Join(columns, ", ") + `)`}
	for rows.Next() {
		values, pointers := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			pointers[i] = &values[i]
		}
		if err := rows.Scan(pointers...); err != nil {
			return err
		}
		batch.add(values...)
		for _, value := range values {
			if content, ok := value.([]byte); ok {
				size += len(content)
			}
		}
		if len(batch.rows)*len(columns) >= maxArguments-len(columns) || size > maxTogetherBytes {
			size = 0
			if err := batch.run(ctx, to); err != nil {
				return err
			}
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return batch.run(ctx, to)
}

// verify reads a whole file and says what is wrong with it as a backup.
func verify(ctx context.Context, path string) error {
	if _, err := os.Stat(path); err != nil {
		return err // or it would be made
	}
	db, err := openSQLite(path, use{connections: 1, txlock: "deferred", pragmas: []string{"query_only(1)"}})
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	return verifyDB(ctx, db)
}

func verifyDB(ctx context.Context, db *sql.DB) error {
	var verdict string
	if err := db.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&verdict); err != nil {
		return explain(err)
	}
	if verdict != "ok" {
		return fmt.Errorf("the file is damaged: %s", verdict)
	}
	var version int64
	if err := db.QueryRowContext(ctx, `SELECT MAX(version_id) FROM goose_db_version WHERE is_applied`).Scan(&version); err != nil {
		return fmt.Errorf("it is no state of ropewalk: %w", explain(err))
	}
	known, err := knownSchema(db)
	if err != nil {
		return err
	}
	if version > known {
		return newerSchema(version, known)
	}
	broken, err := db.QueryContext(ctx, `PRAGMA foreign_key_check`)
	if err != nil {
		return explain(err)
	}
	defer func() { _ = broken.Close() }()
	if broken.Next() {
		return errors.New("the file is damaged: it has rows that refer to others which are not there")
	}
	return broken.Err()
}

// knownSchema is the schema's version that this program works with.
func knownSchema(db *sql.DB) (int64, error) {
	provider, err := migrations(goose.DialectSQLite3, db)
	if err != nil {
		return 0, err
	}
	sources := provider.ListSources()
	return sources[len(sources)-1].Version, nil
}

// quiet is for migrating what is only a copy.
func quiet() hclog.Logger { return hclog.NewNullLogger() }
