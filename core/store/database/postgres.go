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

// The advisory locks of this program.
const (
	LockSchema = 0x726f7065_0001 // held exclusively while the schema is being migrated
	LockInUse  = 0x726f7065_0002 // held in shared mode by every server, and exclusively by a restore
)

const (
	connectTimeout = 5 * time.Second
	connections    = 16 // per server
)

// errURL replaces the library's error, which would repeat parts of the address.
var errURL = errors.New("storage.url is not a PostgreSQL address, or a file that it refers to cannot be read; " +
	"it must look like postgres://user:password@host:5432/database?sslmode=verify-full")

// ParseURL parses a PostgreSQL address. Its error does not contain any part of the address.
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

// dialer returns a dialer for connections that detect within seconds when the other end is gone. Idle connections use
// keep-alive probes, and connections that wait for an acknowledgment use the user timeout (RFC 5482).
func dialer() *net.Dialer {
	return &net.Dialer{
		Timeout:         connectTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 3 * time.Second, Interval: time.Second, Count: 3},
		Control:         setUserTimeout,
	}
}

// Address describes the location of a database for messages, without user and password.
func Address(c *pgx.ConnConfig) string {
	return fmt.Sprintf("database %s at %s:%d", c.Database, c.Host, c.Port)
}

// OpenPool opens a pool of connections without deadlines, for administration such as migrations.
func OpenPool(c *pgx.ConnConfig) *sql.DB {
	db := stdlib.OpenDB(*c)
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	db.SetConnMaxIdleTime(5 * time.Minute)
	return db
}

// OpenServer opens the state in a PostgreSQL database. The schema must be up to date.
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

// AcquireInUse acquires LockInUse for as long as conn is open; lock is the statement to use. It waits up to
// three seconds for other holders, which may be shutting down, and returns false if it did not get the lock.
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

// Exclusively runs do while it holds the advisory lock key, so that no other server works under this lock.
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

// CheckUnused returns an error if servers are using the PostgreSQL database. It returns nil for a file, which has
// its own lock.
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
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // also releases the lock
	free, err := AcquireInUse(ctx, conn, `SELECT pg_advisory_lock($1)`)
	if err != nil {
		return Visible(Explain(err))
	}
	if !free {
		return fmt.Errorf("servers are using %s; stop them first", Address(c))
	}
	return nil
}
