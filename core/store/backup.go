package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pressly/goose/v3"
)

// Backup writes the state as of one moment into a new file, while servers use it or not. The file
// holds everything that the store keeps, secrets of apps among it, and has mode 0600; the files of
// apps and plugins are not in it. It appears complete, checked and synced, or not at all, and never
// in place of another.
func Backup(ctx context.Context, o Options, file string) error {
	if err := backup(ctx, o, file); err != nil {
		return fmt.Errorf("backup to %s: %w", file, explain(err))
	}
	return nil
}

func backup(ctx context.Context, o Options, file string) (err error) {
	if _, err := os.Lstat(file); err == nil {
		return errors.New("the file exists: a backup overwrites nothing, choose another name")
	}
	part, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".part-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeAll(part.Name(), part.Name()+"-journal")) }()
	if err := part.Close(); err != nil {
		return err
	}
	if o.URL == "" {
		err = copyOutOfFile(ctx, o.Path, part.Name())
	} else {
		err = copyOutOfServer(ctx, o, part.Name())
	}
	if err != nil {
		return err
	}
	if err := verify(ctx, part.Name()); err != nil {
		return fmt.Errorf("what was written does not pass the check: %w", err)
	}
	return publish(part.Name(), file)
}

// copyOutOfFile has SQLite copy its file into an empty one.
func copyOutOfFile(ctx context.Context, path, part string) error {
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("there is no state to back up: %w", err)
	}
	db, err := openSQLite(path, use{connections: 1, txlock: "deferred", pragmas: []string{"busy_timeout(10000)"}})
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	_, err = db.ExecContext(ctx, `VACUUM INTO $1`, part)
	return err
}

// copyOutOfServer copies the rows of a PostgreSQL database into an empty SQLite file.
func copyOutOfServer(ctx context.Context, o Options, part string) error {
	c, err := parseURL(o.URL)
	if err != nil {
		return err
	}
	db := openPool(c)
	defer func() { _ = db.Close() }()
	provider, err := migrations(goose.DialectPostgres, db)
	if err != nil {
		return err
	}
	found, known, err := provider.GetVersions(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", place(c), visible(explain(err)))
	case found > known:
		return newerSchema(found, known)
	case found < known:
		return fmt.Errorf("%s has schema %d, this program knows %d: start this version's server once, or back up with the old version", place(c), found, known)
	}
	into, err := openSQLite(part, copier())
	if err != nil {
		return err
	}
	defer func() { _ = into.Close() }()
	if err := migrate(ctx, goose.DialectSQLite3, into, quiet()); err != nil {
		return err
	}
	from, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = rollback(from) }()
	if err := inTransaction(ctx, into, func(to *sql.Tx) error { return copyAll(ctx, from, to) }); err != nil {
		return err
	}
	return into.Close()
}

// publish gives a complete file its name, unless something has taken the name meanwhile.
func publish(part, file string) error {
	if err := syncPath(part); err != nil {
		return err
	}
	if err := os.Link(part, file); err != nil {
		return err
	}
	return syncPath(filepath.Dir(file))
}

// syncPath has the disk keep a file, or the names in a folder.
func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// removeAll removes files; those that are not there are no error.
func removeAll(paths ...string) error {
	var all []error
	for _, path := range paths {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}
