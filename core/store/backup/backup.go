package backup

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hashicorp/go-hclog"
	"github.com/pressly/goose/v3"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
	"github.com/ropewalk/ropewalk/core/store/migrations"
)

// Write writes a consistent snapshot of the state to a new file, whether or not servers are using the state. The
// file contains the secrets of apps, so it has mode 0600. It appears complete, verified and synced, or not at all, and
// never replaces an existing file.
func Write(ctx context.Context, at database.Location, file string) error {
	if err := write(ctx, at, file); err != nil {
		return fmt.Errorf("backup to %s: %w", file, explained(file, err))
	}
	return nil
}

// explained adds advice to an error from writing a file. A backup only reads the state, so a full disk must be
// the one with the file.
func explained(file string, err error) error {
	if !database.FileFull(err) {
		return database.Explain(err)
	}
	return core.Wrap(core.CodeUnavailable, err, "the disk of "+filepath.Dir(file)+" is full; free some space there, or choose another directory")
}

func write(ctx context.Context, at database.Location, file string) (err error) {
	if _, err := os.Lstat(file); err == nil {
		return errors.New("the file already exists; choose another name, because a backup never overwrites a file")
	}
	if err := checkDirectory(filepath.Dir(file)); err != nil {
		return err
	}
	u, err := beginIn(filepath.Dir(file))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, u.remove()) }()
	part := u.file()
	if err := createEmpty(part); err != nil {
		return err
	}
	if at.URL == "" {
		err = copyOutOfFile(ctx, at.Path, part)
	} else {
		err = copyOutOfServer(ctx, at, part)
	}
	if err != nil {
		return err
	}
	if err := writeSums(ctx, part); err != nil {
		return err
	}
	if err := Verify(ctx, part); err != nil {
		return fmt.Errorf("the written file is not a valid backup: %w", err)
	}
	return publish(part, file)
}

// createEmpty creates an empty file that only its owner can read.
func createEmpty(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// checkDirectory returns an error that describes what is wrong with the directory of a new file.
func checkDirectory(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the directory %s does not exist; create it (mkdir -p), or choose a file in another directory", dir)
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory; choose a file in another directory", dir)
	}
	return nil
}

// copyOutOfFile copies an SQLite file into an empty one.
func copyOutOfFile(ctx context.Context, path, part string) error {
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("there is nothing to back up: %w; specify the server's home with --home or ROPEWALK_HOME (the packages use /var/lib/ropewalk)", err)
	}
	db, err := database.OpenSQLite(path, database.Visitor())
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	_, err = db.ExecContext(ctx, `VACUUM INTO $1`, part)
	return err
}

// copyOutOfServer copies the rows of a PostgreSQL database into an empty SQLite file.
func copyOutOfServer(ctx context.Context, at database.Location, part string) error {
	c, err := database.ParseURL(at.URL)
	if err != nil {
		return err
	}
	db := database.OpenPool(c)
	defer func() { _ = db.Close() }()
	found, err := migrations.Version(ctx, goose.DialectPostgres, db)
	if err != nil {
		return fmt.Errorf("%s: %w", database.Address(c), database.Visible(database.Explain(err)))
	}
	if err := migrations.Check(found); err != nil {
		return err
	}
	if latest := migrations.Latest(); found < latest {
		return fmt.Errorf("%s has schema %d, but this program requires %d; start a server of this version once, or back up with the old version", database.Address(c), found, latest)
	}
	into, err := database.OpenSQLite(part, database.Copier())
	if err != nil {
		return err
	}
	defer func() { _ = into.Close() }()
	if err := migrations.Apply(ctx, goose.DialectSQLite3, into, hclog.NewNullLogger()); err != nil {
		return err
	}
	from, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = database.Rollback(from) }()
	if err := database.InTransaction(ctx, into, func(to *sql.Tx) error { return copyAll(ctx, from, to) }); err != nil {
		return err
	}
	return into.Close()
}

// publish gives a complete file its final name, unless another file already has that name.
func publish(part, file string) error {
	if err := syncPath(part); err != nil {
		return err
	}
	if err := os.Link(part, file); err != nil {
		return err
	}
	return syncPath(filepath.Dir(file))
}

// syncPath syncs a file, or the entries of a directory.
func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// removeAll removes files; missing ones are not an error.
func removeAll(paths ...string) error {
	var all []error
	for _, path := range paths {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}
