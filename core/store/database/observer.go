package database

import (
	"database/sql"
	"errors"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// Observer measures calls to a database.
type Observer interface {
	// DatabaseCall records a read or a write; a transaction is one call. err is not nil if the database
	// failed. A missing row is not an error.
	DatabaseCall(system, operation string, took time.Duration, err error)
}

// The operations that an Observer records.
const (
	read  = "read"
	write = "write"
)

// Observe sets the observer. Call it before the first use.
func (db *Database) Observe(o Observer) { db.observer = o }

// observe records a call that started at began and ends now with err.
func (db *Database) observe(operation string, began time.Time, err *error) {
	if db.observer == nil {
		return
	}
	db.observer.DatabaseCall(db.kind.String(), operation, time.Since(began), failure(*err))
}

// failure returns err if the database failed, or nil if the error is due to the request.
func failure(err error) error {
	if err == nil || errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if known, ok := errors.AsType[*core.Error](err); ok && known.Code != core.CodeUnavailable && known.Code != core.CodeInternal {
		return nil
	}
	return err
}

// String returns the name of the database system, as spelled in OpenTelemetry's conventions.
func (k Kind) String() string {
	if k == PostgreSQL {
		return "postgresql"
	}
	return "sqlite"
}

// Stats describes the connections of a database.
type Stats struct {
	Open   int           // open connections
	InUse  int           // connections in use
	Waits  int64         // calls that waited for a connection
	Waited time.Duration // total time of these waits
}

// Stats returns the current statistics of the reading and writing connections together.
func (db *Database) Stats() Stats {
	s := db.write.Stats()
	all := Stats{s.OpenConnections, s.InUse, s.WaitCount, s.WaitDuration}
	if db.read != db.write {
		s = db.read.Stats()
		all.Open, all.InUse, all.Waits, all.Waited = all.Open+s.OpenConnections, all.InUse+s.InUse, all.Waits+s.WaitCount, all.Waited+s.WaitDuration
	}
	return all
}
