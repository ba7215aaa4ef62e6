package store

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
)

// This file is what is particular to SQLite, postgres.go what is to PostgreSQL. The statements
// elsewhere use $1 for arguments, ON CONFLICT for upserts and types that both read the same.

func sqliteDialect() dialect {
	return dialect{ // CROSS JOIN keeps the order of the tables
		numbered: ` FROM json_each($2) n CROSS JOIN conversations c WHERE c.shelf = $1 AND c.number = n.value`,
		sets: `SELECT p.word, p.numbers FROM json_each($3) n CROSS JOIN packed_words p
			WHERE p.shelf = $1 AND p.page = $2 AND p.word = CAST(n.value AS BLOB)`,
		words: `SELECT $1, CAST(value AS BLOB), $3, $4 FROM json_each($2) WHERE TRUE`, // without WHERE it would be parsed as a join
	}
}

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
		"cache_size(-16000)", "temp_store(MEMORY)", // KiB: a search goes through long lists
	}}
}

// openFile opens the state in a file, whose lock is held.
func (s *Store) openFile(ctx context.Context, path string) error {
	s.dialect = sqliteDialect()
	err := private(path)
	if err != nil {
		return err
	}
	if s.write, err = openSQLite(path, writer()); err != nil {
		return err
	}
	s.closers = append(s.closers, s.write.Close)
	if err := migrate(ctx, goose.DialectSQLite3, s.write, s.log); err != nil {
		return err
	}
	if s.read, err = openSQLite(path, readers()); err != nil {
		return err
	}
	s.closers = append(s.closers, s.read.Close)
	s.scribe = newScribe(s.write)
	s.closers = append(s.closers, s.scribe.close)
	_, err = s.EnsureDefaultWorkspace(ctx)
	return err
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
