package backup

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
	"github.com/ropewalk/ropewalk/core/store/migrations"
	"github.com/ropewalk/ropewalk/core/store/seal"
)

// Restore replaces the state with a backup, all or nothing. It returns an error if the file is not a valid backup,
// if a server has the state open, or if there is already state and replace is not set. A replaced SQLite file is
// kept next to the new one, under the name that is returned; the rows of a PostgreSQL database are deleted.
func Restore(ctx context.Context, at database.Location, file string, replace bool) (kept string, err error) {
	if err := Verify(ctx, file); err != nil {
		return "", fmt.Errorf("restore from %s: %w", file, err)
	}
	if at.URL == "" {
		kept, err = restoreFile(ctx, at.Path, file, replace)
	} else {
		err = restoreServer(ctx, at, file, replace)
	}
	if err != nil {
		return "", fmt.Errorf("restore: %w", database.Visible(database.Explain(err)))
	}
	return kept, nil
}

func restoreFile(ctx context.Context, path, file string, replace bool) (kept string, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	unlock, err := database.Lock(path + ".lock")
	if err != nil {
		return "", fmt.Errorf("state %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	_, err = os.Lstat(path)
	there := err == nil
	if there && !replace {
		return "", fmt.Errorf("%s already contains data; move it away, or use --replace, which keeps it next to the new one under another name", path)
	}
	if err := removeStale(filepath.Dir(path)); err != nil {
		return "", err
	}
	part, err := copyFile(ctx, file, filepath.Dir(path))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, removeAll(part)) }()
	if err := forgetState(ctx, part); err != nil {
		return "", err
	}
	if err := errors.Join(giveTo(part, filepath.Dir(path)), giveTo(path+".lock", filepath.Dir(path))); err != nil {
		return "", err
	}
	if there {
		if kept, err = keepOld(ctx, path); err != nil {
			return "", err
		}
	}
	return kept, errors.Join(os.Rename(part, path), syncPath(filepath.Dir(path)))
}

// forgetState removes the identity of the state from a restored file, so that apps' permissions are pending until
// a person confirms them.
func forgetState(ctx context.Context, part string) (err error) {
	db, err := database.OpenSQLite(part, database.Visitor())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = db.ExecContext(ctx, `DELETE FROM settings WHERE name = $1`, stateSetting)
	return err
}

// keepOld gives the state a second name. It also moves the log next to it, which must not be read with another
// database. If the state is intact, the log is first written to it.
func keepOld(ctx context.Context, path string) (kept string, err error) {
	kept = path + ".replaced-" + time.Now().UTC().Format("20060102-150405.000")
	if db, err := database.OpenSQLite(path, database.Visitor()); err == nil {
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

const copyPrefix = ".restore-"

// removeStale removes copies that killed restores left in a directory. The caller holds the state's lock, so no
// other restore is using them.
func removeStale(dir string) error {
	stale, err := filepath.Glob(filepath.Join(dir, copyPrefix+"*"))
	return errors.Join(err, removeAll(stale...))
}

// copyFile copies a file into a directory, synced and with mode 0600, verifies the copy, and returns its path.
func copyFile(ctx context.Context, file, dir string) (string, error) {
	from, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer func() { _ = from.Close() }()
	to, err := os.CreateTemp(dir, copyPrefix+"*")
	if err != nil {
		return "", err
	}
	_, err = io.Copy(to, from)
	if err = errors.Join(err, to.Sync(), to.Close()); err == nil {
		if err = Verify(ctx, to.Name()); err != nil { // the file may have been replaced since it was verified
			err = fmt.Errorf("the copy is not a valid backup: %w", err)
		}
	}
	if err != nil {
		return "", errors.Join(err, removeAll(to.Name()))
	}
	return to.Name(), nil
}

// restoreServer restores a backup into a PostgreSQL database that no server is using.
func restoreServer(ctx context.Context, at database.Location, file string, replace bool) (err error) {
	c, err := database.ParseURL(at.URL)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // also releases the lock
	free, err := database.AcquireInUse(ctx, conn, `SELECT pg_advisory_lock($1)`)
	if err != nil {
		return err
	}
	if !free {
		return fmt.Errorf("servers are using %s; stop them first", database.Address(c))
	}
	part, err := copyFile(ctx, file, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeAll(part, part+"-journal")) }()
	source, err := database.OpenSQLite(part, database.Copier())
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	if err := migrations.Apply(ctx, goose.DialectSQLite3, source, hclog.NewNullLogger()); err != nil { // the backup may be from an older version
		return err
	}
	db := database.OpenPool(c)
	defer func() { _ = db.Close() }()
	return database.Exclusively(ctx, db, database.LockSchema, func() error {
		if found, err := migrations.Version(ctx, goose.DialectPostgres, db); err == nil && found > migrations.Latest() {
			return fmt.Errorf("%s was written by a newer ropewalk (schema %d, but this program supports only %d), and a restore cannot remove its tables; recreate the database (dropdb, createdb), and restore into it",
				database.Address(c), found, migrations.Latest())
		}
		if err := migrations.Apply(ctx, goose.DialectPostgres, db, hclog.NewNullLogger()); err != nil {
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
	defer func() { _ = database.Rollback(from) }()
	return database.InTransaction(ctx, db, func(to *sql.Tx) error {
		used, err := hasState(ctx, to)
		if err != nil {
			return err
		}
		if used && !replace {
			return fmt.Errorf("%s already contains data; use an empty database, or --replace, which deletes the existing data", database.Address(c))
		}
		for _, table := range slices.Backward(Tables()) {
			if _, err := to.ExecContext(ctx, `DELETE FROM `+table); err != nil {
				return err
			}
		}
		return copyAll(ctx, from, to)
	})
}

// hasState reports whether the database contains more than what a server creates on its first start.
func hasState(ctx context.Context, tx *sql.Tx) (used bool, err error) {
	err = tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM users WHERE id <> $1) OR EXISTS (SELECT 1 FROM installations)
		OR EXISTS (SELECT 1 FROM collections) OR EXISTS (SELECT 1 FROM settings WHERE name <> $3) OR EXISTS (SELECT 1 FROM usage_records)
		OR EXISTS (SELECT 1 FROM workspaces WHERE id <> $2)`, core.Owner().User.ID, core.DefaultWorkspaceID, seal.RewrittenSetting).Scan(&used)
	return used, err
}

// giveTo changes the owner of a file to a directory's owner. root may restore for a server that runs as another user,
// which otherwise could not open the state. It does nothing for users other than root.
func giveTo(file, dir string) error {
	info, err := os.Stat(dir)
	if err != nil || os.Geteuid() != 0 {
		return err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok {
		return os.Lchown(file, int(owner.Uid), int(owner.Gid))
	}
	return nil
}
