package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/ropewalk/ropewalk/core"
)

// Advisory locks of this program.
const (
	LockSchema = 0x726f7065_0001 // held exclusively while the schema is brought up to date
	LockInUse  = 0x726f7065_0002 // held in common by every server, and exclusively by a restore
)

const (
	connectTimeout = 5 * time.Second
	connections    = 16 // of one server
)

// errURL replaces the library's error, which repeats parts of the address.
var errURL = errors.New("storage.url: is not a PostgreSQL address, or a file it names cannot be read; " +
	"want postgres://user:password@host:5432/database?sslmode=verify-full")

// ParseURL reads a PostgreSQL address.
func ParseURL(address core.Secret) (*pgx.ConnConfig, error) {
	c, err := pgx.ParseConfig(address.Reveal())
	if err != nil {
		return nil, errURL
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = connectTimeout
	}
	if _, set := c.RuntimeParams["application_name"]; !set {
		c.RuntimeParams["application_name"] = "ropewalk"
	}
	c.DialFunc = dialer().DialContext
	return c, nil
}

// dialer makes connections that notice within seconds when the other end is gone: an idle one by
// keep-alive probes, one that waits for an acknowledgement by the user timeout (RFC 5482).
func dialer() *net.Dialer {
	return &net.Dialer{
		Timeout:         connectTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 3 * time.Second, Interval: time.Second, Count: 3},
		Control:         setUserTimeout,
	}
}

// Address is where a database is, for messages: without user and password.
func Address(c *pgx.ConnConfig) string {
	return fmt.Sprintf("database %s at %s:%d", c.Database, c.Host, c.Port)
}

// OpenPool opens connections without any deadline, for administration such as migrations.
func OpenPool(c *pgx.ConnConfig) *sql.DB {
	db := stdlib.OpenDB(*c)
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	db.SetConnMaxIdleTime(5 * time.Minute)
	return db
}

// OpenServer opens the state in a PostgreSQL database whose schema is up to date.
func OpenServer(c *pgx.ConnConfig, log hclog.Logger) *Database {
	c = c.Copy()
	if _, set := c.RuntimeParams["statement_timeout"]; !set {
		c.RuntimeParams["statement_timeout"] = strconv.FormatInt(statementTimeout.Milliseconds(), 10)
	}
	pool := OpenPool(c)
	db := &Database{kind: PostgreSQL, write: pool, read: pool, snapshot: sql.LevelRepeatableRead, log: log}
	db.deadline = &deadline{reset: func() {
		pool.SetMaxIdleConns(0)
		pool.SetMaxIdleConns(connections)
	}}
	db.closers = append(db.closers, pool.Close)
	return db
}

// AcquireInUse takes LockInUse for as long as conn is open; lock is the statement. It waits a moment for
// those who hold it: they may have ended just now.
func AcquireInUse(ctx context.Context, conn *pgx.Conn, lock string) (bool, error) {
	if _, err := conn.Exec(ctx, `SET lock_timeout = '3s'`); err != nil {
		return false, err
	}
	_, err := conn.Exec(ctx, lock, int64(LockInUse))
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "55P03" { // lock_not_available
		return false, nil
	}
	return err == nil, err
}

// Exclusively runs do while no other server runs anything that needs the same lock.
func Exclusively(ctx context.Context, db *sql.DB, key int64, do func() error) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.ExecContext(ctx, `SELECT pg_advisory_lock($1)`, key); err != nil {
		return err
	}
	err = do()
	_, unlockErr := conn.ExecContext(context.WithoutCancel(ctx), `SELECT pg_advisory_unlock($1)`, key)
	return errors.Join(err, unlockErr)
}

// CheckUnused returns an error when servers use the PostgreSQL database. It is nil for a file, which nobody
// can open while a server has it open.
func CheckUnused(ctx context.Context, at Location) error {
	if at.URL == "" {
		return nil
	}
	c, err := ParseURL(at.URL)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return Visible(Explain(err))
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // which releases the lock
	free, err := AcquireInUse(ctx, conn, `SELECT pg_advisory_lock($1)`)
	if err != nil {
		return Visible(Explain(err))
	}
	if !free {
		return fmt.Errorf("servers are using %s: stop them first", Address(c))
	}
	return nil
}
