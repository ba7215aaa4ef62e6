package store

import (
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// This file is all that is particular to SQLite. The statements elsewhere use $1 for arguments,
// ON CONFLICT for upserts and the types TEXT, BIGINT and BOOLEAN, which PostgreSQL reads the same.

//go:embed migrations/*.sql
var migrations embed.FS

const dialect = goose.DialectSQLite3

// A use is what connections to the file are for.
type use struct {
	connections int
	pragmas     []string
	txlock      string
}

// writer takes the write lock when a transaction begins, so that none fails half-way.
func writer() use {
	return use{connections: 1, txlock: "immediate", pragmas: []string{
		"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)",
	}}
}

func readers() use {
	return use{connections: 4, txlock: "deferred", pragmas: []string{
		"busy_timeout(10000)", "foreign_keys(1)", "query_only(1)",
	}}
}

func openSQLite(path string, u use) (*sql.DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: url.Values{
		"_pragma": u.pragmas, "_txlock": {u.txlock}, "_defensive": {"1"}, "_error_rc": {"1"},
	}.Encode()}
	connector, err := sqlite.NewConnector(dsn.String())
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(u.connections)
	db.SetMaxIdleConns(u.connections)
	return db, nil
}

// private makes the file with mode 0600 if it is not there, and takes others' rights away if it
// is: it holds secrets. SQLite gives the file's mode to the files it puts beside it.
func private(path string) error {
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

// explain says what an operator can do about an error of the database itself.
func explain(err error) error {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return err
	}
	var advice string
	switch e.Code() & 0xff { // the low byte is the primary code
	case sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT:
		advice = "the file is damaged or is no database: restore a backup, or move it away to start anew"
	case sqlite3.SQLITE_FULL:
		advice = "the disk is full: nothing was changed; make room and try again"
	case sqlite3.SQLITE_READONLY:
		advice = "the file or its folder is read-only: nothing was changed; give the server the right to write there"
	case sqlite3.SQLITE_CANTOPEN:
		advice = "the file cannot be opened: check that its folder exists and that the server may write there"
	case sqlite3.SQLITE_IOERR:
		advice = "the disk reports an error: nothing was acknowledged"
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		advice = "another program holds the database: end it and try again"
	default:
		return err
	}
	return fmt.Errorf("%s (%w)", advice, err)
}
