package backup

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"

	"github.com/pressly/goose/v3"

	"github.com/ropewalk/ropewalk/core/store/database"
	"github.com/ropewalk/ropewalk/core/store/seal"
)

// Verify reads a whole file and returns what is wrong with it as a backup, nil when it is valid.
func Verify(ctx context.Context, path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err // opening it would create it
	case !info.Mode().IsRegular():
		return errors.New("it is not a regular file")
	}
	db, err := database.OpenSQLite(path, database.Reader())
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	err = verifySchema(ctx, db, info.Size())
	if err == nil {
		err = verifyDatabase(ctx, db)
	}
	if database.Damaged(err) { // the advice for a server that cannot open its state is to restore a backup
		return errors.New("the file is damaged or is not a backup: choose another one")
	}
	return err
}

// verifySchema refuses what no state has and what the sums do not cover: bytes behind the last page, which a restore
// would copy however many there are, and programs in the file: a trigger or a view runs in the server, with every read
// or write of its table.
func verifySchema(ctx context.Context, db *sql.DB, size int64) error {
	var pages, pageSize int64
	if err := db.QueryRowContext(ctx, `SELECT page_count, page_size FROM pragma_page_count, pragma_page_size`).Scan(&pages, &pageSize); err != nil {
		return database.Explain(err)
	}
	if size > pages*pageSize {
		return fmt.Errorf("the file is damaged: it has %d bytes, and %d pages of %d", size, pages, pageSize)
	}
	var kind, name string
	err := db.QueryRowContext(ctx, `SELECT type, name FROM sqlite_master WHERE type NOT IN ('table', 'index') OR sql LIKE 'CREATE VIRTUAL%' LIMIT 1`).Scan(&kind, &name)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return database.Explain(err)
	}
	return fmt.Errorf("it was changed: it has the %s %q, and no state has one", kind, name)
}

// CheckKeys returns what is wrong with the keys for a backup: nil when every app in it can be read with them.
func CheckKeys(ctx context.Context, path string, keys *seal.Keys) error {
	db, err := database.OpenSQLite(path, database.Reader())
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	return seal.Check(ctx, db, keys)
}

func verifyDatabase(ctx context.Context, db *sql.DB) error {
	var verdict string
	if err := db.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&verdict); err != nil {
		return database.Explain(err)
	}
	if verdict != "ok" {
		return fmt.Errorf("the file is damaged: %s", verdict)
	}
	var version int64
	if err := db.QueryRowContext(ctx, `SELECT MAX(version_id) FROM goose_db_version WHERE is_applied`).Scan(&version); err != nil {
		return fmt.Errorf("it is not a state of ropewalk: %w", database.Explain(err))
	}
	known, err := knownSchema(db)
	if err != nil {
		return err
	}
	if version > known {
		return database.NewerSchema(version, known)
	}
	broken, err := db.QueryContext(ctx, `PRAGMA foreign_key_check`)
	if err != nil {
		return database.Explain(err)
	}
	defer func() { _ = broken.Close() }()
	if broken.Next() {
		return errors.New("the file is damaged: it has rows that refer to missing ones")
	}
	if err := broken.Err(); err != nil {
		return err
	}
	return verifySums(ctx, db)
}

// knownSchema is the schema's version that this program works with.
func knownSchema(db *sql.DB) (int64, error) {
	provider, err := database.Migrations(goose.DialectSQLite3, db)
	if err != nil {
		return 0, err
	}
	sources := provider.ListSources()
	return sources[len(sources)-1].Version, nil
}
