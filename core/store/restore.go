package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"

	"github.com/ropewalk/ropewalk/core"
)

// Restore makes the state what a backup holds, all or nothing. It refuses a file that does not pass
// the check, a state that a server has open, and, unless replace is set, to take the place of a state
// that is there. A file that is replaced stays beside the new one under the name that is returned; the
// rows of a PostgreSQL database are gone.
func Restore(ctx context.Context, o Options, file string, replace bool) (kept string, err error) {
	if err := verify(ctx, file); err != nil {
		return "", fmt.Errorf("restore from %s: %w", file, err)
	}
	if o.URL == "" {
		kept, err = restoreFile(ctx, o.Path, file, replace)
	} else {
		err = restoreServer(ctx, o, file, replace)
	}
	if err != nil {
		return "", fmt.Errorf("restore: %w", visible(explain(err)))
	}
	return kept, nil
}

func restoreFile(ctx context.Context, path, file string, replace bool) (kept string, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	unlock, err := lock(path + ".lock")
	if err != nil {
		return "", fmt.Errorf("state %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	_, err = os.Lstat(path)
	there := err == nil
	if there && !replace {
		return "", fmt.Errorf("there is a state in %s already: move it away, or set --replace, which keeps it beside under another name", path)
	}
	part, err := copyFile(file, filepath.Dir(path))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, removeAll(part)) }()
	if err := verify(ctx, part); err != nil {
		return "", fmt.Errorf("the copy does not pass the check: %w", err)
	}
	if there {
		if kept, err = putAside(ctx, path); err != nil {
			return "", err
		}
	}
	return kept, errors.Join(os.Rename(part, path), syncPath(filepath.Dir(path)))
}

// putAside gives the state a second name, and takes away the log beside it, which must not be read
// with another state. From a sound state the log is written into it first; with a damaged one it is
// kept.
func putAside(ctx context.Context, path string) (kept string, err error) {
	kept = path + ".replaced-" + time.Now().UTC().Format("20060102-150405.000")
	if db, err := openSQLite(path, use{connections: 1, txlock: "deferred", pragmas: []string{"busy_timeout(1000)"}}); err == nil {
		_, _ = db.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`)
		_ = db.Close()
	}
	if err := os.Link(path, kept); err != nil {
		return "", err
	}
	for _, end := range []string{"-wal", "-shm"} {
		if err := os.Rename(path+end, kept+end); err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
	}
	return kept, nil
}

// copyFile copies a file into a folder, synced and with mode 0600, and returns the copy's path.
func copyFile(file, dir string) (string, error) {
	from, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer func() { _ = from.Close() }()
	to, err := os.CreateTemp(dir, ".restore-*")
	if err != nil {
		return "", err
	}
	_, err = io.Copy(to, from)
	if err = errors.Join(err, to.Sync(), to.Close()); err != nil {
		return "", errors.Join(err, removeAll(to.Name()))
	}
	return to.Name(), nil
}

// restoreServer fills a PostgreSQL database that no server uses.
func restoreServer(ctx context.Context, o Options, file string, replace bool) (err error) {
	c, err := parseURL(o.URL)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // and with it, the lock
	free, err := holds(ctx, conn, `SELECT pg_advisory_lock($1)`)
	if err != nil {
		return err
	}
	if !free {
		return fmt.Errorf("servers are using %s: end them first", place(c))
	}
	part, err := copyFile(file, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeAll(part, part+"-journal")) }()
	source, err := openSQLite(part, copier())
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	if err := migrate(ctx, goose.DialectSQLite3, source, quiet()); err != nil { // a backup of an older version
		return err
	}
	db := openPool(c)
	defer func() { _ = db.Close() }()
	return alone(ctx, db, lockSchema, func() error {
		if err := migrate(ctx, goose.DialectPostgres, db, quiet()); err != nil {
			return err
		}
		return fillServer(ctx, source, db, c, replace)
	})
}

func fillServer(ctx context.Context, source, db *sql.DB, c *pgx.ConnConfig, replace bool) error {
	from, err := source.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = rollback(from) }()
	return inTransaction(ctx, db, func(to *sql.Tx) error {
		used, err := inUse(ctx, to)
		if err != nil {
			return err
		}
		if used && !replace {
			return fmt.Errorf("there is a state in %s already: use an empty database, or set --replace, which deletes what is there", place(c))
		}
		for _, table := range slices.Backward(tables()) {
			if _, err := to.ExecContext(ctx, `DELETE FROM `+table); err != nil {
				return err
			}
		}
		return copyAll(ctx, from, to)
	})
}

// inUse tells a state from one that a server has only just made.
func inUse(ctx context.Context, tx *sql.Tx) (used bool, err error) {
	err = tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM users WHERE id <> $1) OR EXISTS (SELECT 1 FROM installations)
		OR EXISTS (SELECT 1 FROM shelves) OR EXISTS (SELECT 1 FROM settings) OR EXISTS (SELECT 1 FROM usage_records)
		OR EXISTS (SELECT 1 FROM workspaces WHERE id <> $2)`, core.Owner().User.ID, core.DefaultWorkspaceID).Scan(&used)
	return used, err
}
