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

// examineTime limits how long checkPages reads a file, so a large file is not read to the end.
const examineTime = 5 * time.Second

// Examine returns an error that explains why a server could not open the state, or nil. It does not change anything.
// It reads a file for at most examineTime, and no server may have the file open. A missing file is not an error,
// because the next start creates it.
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

// checkPages returns an error if it finds a damaged page in a file within examineTime. `ropewalk doctor` and each start
// of a server make the same check.
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
		return fmt.Errorf("the file is damaged; restore a backup (%s)", verdict)
	}
	return nil
}

// examineSchema returns an error if this program cannot bring the file's schema up to date.
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
