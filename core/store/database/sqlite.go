package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/pressly/goose/v3"
	"golang.org/x/sys/unix"
	"modernc.org/sqlite"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/migrations"
)

// This file contains the code that is specific to SQLite, and postgres.go the code for PostgreSQL. Statements elsewhere
// use $1 for arguments, ON CONFLICT for upserts, and types that both databases treat in the same way.

// Access specifies how to set up connections to a file.
type Access struct {
	connections int
	pragmas     []string
	txlock      string
}

// writer returns access that takes the write lock when a transaction starts, so that none fails halfway.
func writer() Access {
	return Access{connections: 1, txlock: "immediate", pragmas: []string{
		"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)",
	}}
}

func readers() Access {
	return Access{connections: 4, txlock: "deferred", pragmas: []string{
		"busy_timeout(10000)", "foreign_keys(1)", "query_only(1)",
		"cache_size(-16000)", "temp_store(MEMORY)", // KiB: a search reads long lists
	}}
}

// Reader returns access to a file for a single reader.
func Reader() Access {
	return Access{connections: 1, txlock: "deferred", pragmas: []string{"query_only(1)"}}
}

// Visitor returns access to a file that a server may have open.
func Visitor() Access {
	return Access{connections: 1, txlock: "deferred", pragmas: []string{"busy_timeout(10000)"}}
}

// Copier returns access to a file that nothing else has open, and that is discarded if something fails. It does
// without the durability that a live state needs.
func Copier() Access {
	return Access{connections: 1, txlock: "deferred", pragmas: []string{"journal_mode(DELETE)", "synchronous(OFF)", "foreign_keys(0)"}}
}

// OpenFile opens the state in an SQLite file, which it creates if needed, and brings its schema up to date. The
// caller must hold the home's lock.
func OpenFile(ctx context.Context, path string, log hclog.Logger) (_ *Database, err error) {
	db := &Database{kind: SQLite, log: log}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.Close())
		}
	}()
	if err = makePrivate(path); err != nil {
		return nil, err
	}
	if db.write, err = OpenSQLite(path, writer()); err != nil {
		return nil, err
	}
	db.closers = append(db.closers, db.write.Close)
	if err = checkPages(ctx, db.write); err != nil {
		return nil, err
	}
	if err = migrations.Apply(ctx, goose.DialectSQLite3, db.write, log); err != nil {
		return nil, err
	}
	if _, err = db.write.ExecContext(ctx, `DROP TABLE IF EXISTS `+BackupSums); err != nil {
		return nil, err
	}
	if db.read, err = OpenSQLite(path, readers()); err != nil {
		return nil, err
	}
	db.closers = append(db.closers, db.read.Close)
	db.group = newGroupCommit(db.write)
	db.closers = append(db.closers, db.group.close)
	db.guard, err = inPlace(path)
	return db, err
}

// BackupSums is the table with the checksums of a backup. It is removed when a backup is opened as the state,
// because the tables then change.
const BackupSums = "backup_parts"

// OpenSQLite opens a file. It creates the file if it does not exist and access allows writing.
func OpenSQLite(path string, access Access) (*sql.DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: url.Values{
		"_pragma": access.pragmas, "_txlock": {access.txlock}, "_defensive": {"1"}, "_error_rc": {"1"},
	}.Encode()}
	connector, err := sqlite.NewConnector(dsn.String())
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(access.connections)
	db.SetMaxIdleConns(access.connections)
	return db, nil
}

// makePrivate creates the file with mode 0600, or removes the access rights of other users if it exists, because
// it contains secrets. SQLite gives the same mode to the files that it creates next to it.
func makePrivate(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = f.Chmod(0o600)
	}
	return errors.Join(err, f.Close())
}

// Lock makes this process the only one that has the state open, until unlock is called or the process exits, even if it
// is killed. The lock file itself remains; it contains the process id, for the error message.
func Lock(path string) (unlock func() error, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		holder, _ := io.ReadAll(io.LimitReader(f, 32))
		defer func() { _ = f.Close() }()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("another server (process %s) has it open; stop that server, or use another home with --home",
				strings.TrimSpace(string(holder)))
		}
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return f.Close, nil
}

// inPlace returns a check that the file and its directory are still the ones that were opened. Without this check, a
// server whose home was deleted or replaced would acknowledge writes that are lost.
func inPlace(path string) (func() error, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	opened, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	return func() error {
		now, err := os.Stat(path)
		if err == nil && os.SameFile(opened, now) {
			return nil
		}
		reason := "was replaced by another file"
		if err != nil {
			reason = "no longer exists"
		}
		return core.Wrap(core.CodeUnavailable, fmt.Errorf("%s %s while the server had it open", path, reason),
			"the database file "+reason+", so nothing was changed; stop the server, restore its home, and start it again")
	}, nil
}
