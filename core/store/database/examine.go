package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"
)

// examineTime is how long the pages of a file are read: a large file is not read to its end.
const examineTime = 10 * time.Second

// Examine says why a server could not open the state, or nil. It changes nothing. A file is read as far as
// that takes a few seconds, and must not be open in a server; a file that does not exist is made by the
// next start.
func Examine(ctx context.Context, at Location) error {
	if at.URL != "" {
		return Visible(Explain(examineServer(ctx, at)))
	}
	if err := CheckNewFile(at.Path); err != nil {
		return err
	}
	if info, err := os.Stat(at.Path); errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil
	}
	return Explain(examineFile(ctx, at.Path))
}

func examineServer(ctx context.Context, at Location) error {
	c, err := ParseURL(at.URL)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

func examineFile(ctx context.Context, path string) (err error) {
	db, err := OpenSQLite(path, Reader())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := examineSchema(ctx, db); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, examineTime)
	defer cancel()
	var verdict string
	err = db.QueryRowContext(limited, `PRAGMA quick_check(1)`).Scan(&verdict)
	switch {
	case limited.Err() != nil:
		return nil
	case err != nil:
		return err
	case verdict != "ok":
		return fmt.Errorf("the file is damaged: restore a backup (%s)", verdict)
	}
	return nil
}

// examineSchema returns an error when a newer program wrote the file.
func examineSchema(ctx context.Context, db *sql.DB) error {
	var tables int
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_master WHERE name = 'goose_db_version'`).Scan(&tables); err != nil || tables == 0 {
		return err
	}
	var found int64
	if err := db.QueryRowContext(ctx, `SELECT coalesce(max(version_id), 0) FROM goose_db_version`).Scan(&found); err != nil {
		return err
	}
	provider, err := Migrations(goose.DialectSQLite3, db)
	if err != nil {
		return err
	}
	steps := provider.ListSources()
	if known := steps[len(steps)-1].Version; found > known {
		return NewerSchema(found, known)
	}
	return nil
}
