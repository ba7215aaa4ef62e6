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

	"github.com/ropewalk/ropewalk/core/store/migrations"
)

// examineTime is how long the pages of a file are read: a large file is not read to its end.
const examineTime = 5 * time.Second

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
	return checkPages(ctx, db)
}

// checkPages returns an error for a file with damaged pages, as far as it is read within examineTime. The doctor and each
// start of a server read the same.
func checkPages(ctx context.Context, db *sql.DB) error {
	limited, cancel := context.WithTimeout(ctx, examineTime)
	defer cancel()
	var verdict string
	err := db.QueryRowContext(limited, `PRAGMA quick_check(1)`).Scan(&verdict)
	switch {
	case ctx.Err() == nil && limited.Err() != nil:
		return nil
	case err != nil:
		return err
	case verdict != "ok":
		return fmt.Errorf("the file is damaged: restore a backup (%s)", verdict)
	}
	return nil
}

// examineSchema returns an error when this program cannot bring the file up to date.
func examineSchema(ctx context.Context, db *sql.DB) error {
	var tables int
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_master WHERE name = 'goose_db_version'`).Scan(&tables); err != nil || tables == 0 {
		return err
	}
	var found int64
	if err := db.QueryRowContext(ctx, `SELECT coalesce(max(version_id), 0) FROM goose_db_version`).Scan(&found); err != nil {
		return err
	}
	return migrations.Check(found)
}
