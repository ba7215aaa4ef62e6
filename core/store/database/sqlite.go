package database

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"

	"github.com/hashicorp/go-hclog"
	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
)

// This file is what is particular to SQLite, postgres.go what is to PostgreSQL. Statements elsewhere
// use $1 for arguments, ON CONFLICT for upserts, and types that both read the same.

// Access is how connections to a file are set up.
type Access struct {
	connections int
	pragmas     []string
	txlock      string
}

// writer takes the write lock when a transaction begins, so that none fails half-way.
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

// Reader is access to a file for one reader.
func Reader() Access {
	return Access{connections: 1, txlock: "deferred", pragmas: []string{"query_only(1)"}}
}

// Visitor is access to a file that a server may have open.
func Visitor() Access {
	return Access{connections: 1, txlock: "deferred", pragmas: []string{"busy_timeout(10000)"}}
}

// Copier is access to a file that nothing else has open and that is thrown away when something fails:
// without the safety that a running state needs.
func Copier() Access {
	return Access{connections: 1, txlock: "deferred", pragmas: []string{"journal_mode(DELETE)", "synchronous(OFF)", "foreign_keys(0)"}}
}

// OpenFile opens the state in an SQLite file, makes it when it does not exist, and brings its schema up
// to date. The caller holds the lock of its home.
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
	if err = Migrate(ctx, goose.DialectSQLite3, db.write, log); err != nil {
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

// BackupSums is the table in which a backup has its sums. It is removed when a backup is opened as a state,
// whose tables change.
const BackupSums = "backup_parts"

// OpenSQLite opens a file. It is made when it does not exist and access allows writing.
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

// makePrivate makes the file with mode 0600 when it does not exist, and takes the rights of others away
// when it does: it holds secrets. SQLite gives the file's mode to the files it puts beside it.
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
