package database

import (
	"database/sql"
	"errors"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// Observer measures the calls of a database.
type Observer interface {
	// DatabaseCall records a read or a write, a transaction as a whole. An error means that the database
	// failed; that there is no such row is none.
	DatabaseCall(system, operation string, took time.Duration, err error)
}

// The operations that an Observer records.
const (
	read  = "read"
	write = "write"
)

// Observe sets the observer. Call it before the first use.
func (db *Database) Observe(o Observer) { db.observer = o }

// observe records a call that began then and ends now with the error.
func (db *Database) observe(operation string, began time.Time, err *error) {
	if db.observer == nil {
		return
	}
	db.observer.DatabaseCall(db.kind.String(), operation, time.Since(began), failure(*err))
}

// failure returns err if the database failed; an error of what was asked of it is none.
func failure(err error) error {
	if err == nil || errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if known, ok := errors.AsType[*core.Error](err); ok && known.Code != core.CodeUnavailable && known.Code != core.CodeInternal {
		return nil
	}
	return err
}

// String returns the name of the database system, as OpenTelemetry's conventions spell it.
func (k Kind) String() string {
	if k == PostgreSQL {
		return "postgresql"
	}
	return "sqlite"
}

// Stats are the connections of a database.
type Stats struct {
	Open   int           // connections
	InUse  int           // of them
	Waits  int64         // calls that waited for a connection
	Waited time.Duration // of all of them
}

// Stats returns the connections now, those that read and those that write together.
func (db *Database) Stats() Stats {
	s := db.write.Stats()
	all := Stats{s.OpenConnections, s.InUse, s.WaitCount, s.WaitDuration}
	if db.read != db.write {
		s = db.read.Stats()
		all.Open, all.InUse, all.Waits, all.Waited = all.Open+s.OpenConnections, all.InUse+s.InUse, all.Waits+s.WaitCount, all.Waited+s.WaitDuration
	}
	return all
}
