package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
)

// Kind is the kind of a database.
type Kind int

// The kinds of databases.
const (
	SQLite Kind = iota
	PostgreSQL
)

// Location is where the state is stored.
type Location struct {
	Path string      // the SQLite file, usually <home>/ropewalk.db; created with mode 0600
	URL  core.Secret // a PostgreSQL database to use instead of the file; Path still determines the home
}

// Database is an open database. It is safe for concurrent use. All writes to an SQLite file go through
// one connection, so that they queue in the process instead of failing on each other's locks. Reads
// have their own connections and never wait for a write.
type Database struct {
	kind     Kind
	write    *sql.DB
	read     *sql.DB
	snapshot sql.IsolationLevel // the level at which all reads of a transaction see one snapshot
	group    *groupCommit       // nil with PostgreSQL
	deadline *deadline
	observer Observer     // nil measures nothing
	guard    func() error // returns an error if the file is no longer in place, in which case writes are refused; nil for no check
	log      hclog.Logger

	closers []func() error // in the order of opening
}

// Kind returns the kind of the database.
func (db *Database) Kind() Kind { return db.kind }

// LockRow returns the clause to append to a SELECT of rows with the alias c that the transaction is going to change.
func (db *Database) LockRow() string {
	if db.kind == PostgreSQL {
		return "FOR UPDATE OF c"
	}
	return ""
}

// Close closes the connections. No method may be called afterwards.
func (db *Database) Close() error {
	var all []error
	for i := len(db.closers) - 1; i >= 0; i-- {
		all = append(all, db.closers[i]())
	}
	db.closers = nil
	return errors.Join(all...)
}

// Querier is a transaction, or a database outside any transaction.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Row is a row of a result.
type Row interface{ Scan(dest ...any) error }

// Do is the body of a transaction. Its statements must run with ctx, which has a deadline.
type Do = func(ctx context.Context, tx *sql.Tx) error

// Update runs a writing transaction. If it returns nil, the whole transaction is durable; if it returns an
// error, nothing was changed. what describes the operation in the error.
func (db *Database) Update(ctx context.Context, what string, do Do) error {
	return db.update(ctx, what, db.deadline.short, do)
}

// UpdateLong is like Update, but for transactions that may take minutes, such as storing the files of a bundle.
func (db *Database) UpdateLong(ctx context.Context, what string, do Do) error {
	return db.update(ctx, what, db.deadline.long, do)
}

type limiter = func(context.Context) (context.Context, func(error) error)

func (db *Database) update(ctx context.Context, what string, limit limiter, do Do) (err error) {
	defer db.observe(write, time.Now(), &err)
	err = db.guarded()
	if err == nil {
		limited, finish := limit(ctx)
		err = finish(InTransaction(limited, db.write, func(tx *sql.Tx) error { return do(limited, tx) }))
	}
	return explained(what, err)
}

// UpdateGrouped is like Update, but for small writes that are frequent while people chat. In an SQLite file, writes
// that are waiting at the same time share a transaction. do may be called twice; the second call must overwrite the results of
// the first.
func (db *Database) UpdateGrouped(ctx context.Context, what string, do Do) (err error) {
	if db.group == nil {
		return db.Update(ctx, what, do)
	}
	defer db.observe(write, time.Now(), &err)
	err = db.guarded()
	if err == nil {
		err = db.group.write(ctx, func(tx *sql.Tx) error { return do(ctx, tx) })
	}
	return explained(what, err)
}

func (db *Database) guarded() error {
	if db.guard == nil {
		return nil
	}
	return db.guard()
}

// View runs reads that all see the same snapshot of the state.
func (db *Database) View(ctx context.Context, what string, do Do) (err error) {
	defer db.observe(read, time.Now(), &err)
	ctx, finish := db.deadline.short(ctx)
	tx, err := db.read.BeginTx(ctx, &sql.TxOptions{Isolation: db.snapshot, ReadOnly: true})
	if err == nil {
		err = errors.Join(do(ctx, tx), Rollback(tx))
	}
	return explained(what, finish(err))
}

// Read runs reads outside any transaction.
func (db *Database) Read(ctx context.Context, what string, do func(ctx context.Context, q Querier) error) (err error) {
	defer db.observe(read, time.Now(), &err)
	ctx, finish := db.deadline.short(ctx)
	return explained(what, finish(do(ctx, db.read)))
}

// Get reads one row into dest. The error is sql.ErrNoRows if there is none.
func (db *Database) Get(ctx context.Context, what, query string, args []any, dest ...any) error {
	return db.Read(ctx, what, func(ctx context.Context, q Querier) error {
		return q.QueryRowContext(ctx, query, args...).Scan(dest...)
	})
}

// Select calls each for every row of a query.
func (db *Database) Select(ctx context.Context, what, query string, args []any, each func(row Row) error) error {
	_, err := List(ctx, db, what, query, args, func(row Row) (struct{}, error) { return struct{}{}, each(row) })
	return err
}

// Exec runs one writing statement.
func (db *Database) Exec(ctx context.Context, what, statement string, args ...any) (err error) {
	defer db.observe(write, time.Now(), &err)
	if err = db.guarded(); err == nil {
		limited, finish := db.deadline.short(ctx)
		_, err = db.write.ExecContext(limited, statement, args...)
		err = finish(err)
	}
	return explained(what, err)
}

// explained adds to an error which operation failed, and what to do about it.
func explained(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, Explain(err))
	}
	return nil
}

// InTransaction runs do in its own transaction, without a deadline.
func InTransaction(ctx context.Context, db *sql.DB, do func(tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, Rollback(tx))
	}
	return tx.Commit()
}

// Rollback rolls back a transaction. It is not an error if the driver has already ended it.
func Rollback(tx *sql.Tx) error {
	if err := tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
		return err
	}
	return nil
}

// Millis returns a time as the tables store it: milliseconds since 1970.
func Millis(t time.Time) int64 { return t.UnixMilli() }

// FromMillis is the inverse of Millis. The time is in UTC.
func FromMillis(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// WritePool returns the pool of writing connections, for statements that need special settings. It does not
// apply deadlines.
func (db *Database) WritePool() *sql.DB { return db.write }

// ReadPool returns the pool of reading connections. It does not apply deadlines.
func (db *Database) ReadPool() *sql.DB { return db.read }
