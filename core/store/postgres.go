package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/ropewalk/ropewalk/core"
)

// This file is what is particular to PostgreSQL, which several servers may use at a time.

// Advisory locks of this program, by their meaning.
const (
	lockSchema = 0x726f7065_0001 // held alone while the schema is brought up to date
	lockInUse  = 0x726f7065_0002 // held in common by every server, and alone by a restore
)

const (
	connectTimeout = 5 * time.Second
	connections    = 16 // of one server
)

// errURL stands in for the library's error, which repeats parts of the address.
var errURL = errors.New("storage.url: is not a PostgreSQL address, or a file it names cannot be read; " +
	"want postgres://user:password@host:5432/database?sslmode=verify-full")

func parseURL(address core.Secret) (*pgx.ConnConfig, error) {
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
	return c, nil
}

func postgresDialect() dialect {
	return dialect{
		lockRow: "FOR UPDATE OF c", snapshot: sql.LevelRepeatableRead,
		numbered: ` FROM json_array_elements_text(CAST($2 AS JSON)) n CROSS JOIN LATERAL
			(SELECT * FROM conversations WHERE shelf = $1 AND number = CAST(n.value AS BIGINT) LIMIT 1) c WHERE TRUE`,
		sets: `SELECT p.word, p.numbers FROM json_array_elements_text(CAST($3 AS JSON)) n CROSS JOIN LATERAL
			(SELECT word, numbers FROM packed_words WHERE shelf = $1 AND page = $2 AND word = convert_to(n.value, 'UTF8') LIMIT 1) p`,
		words: `SELECT CAST($1 AS BIGINT), convert_to(value, 'UTF8'), CAST($3 AS BIGINT), CAST($4 AS BIGINT)
			FROM json_array_elements_text(CAST($2 AS JSON))`,
	}
}

// place is where a state is, for messages: without user and password.
func place(c *pgx.ConnConfig) string {
	return fmt.Sprintf("database %s at %s:%d", c.Database, c.Host, c.Port)
}

func openPool(c *pgx.ConnConfig) *sql.DB {
	db := stdlib.OpenDB(*c)
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	db.SetConnMaxIdleTime(5 * time.Minute)
	return db
}

// openServer opens the state in a PostgreSQL database, together with the other servers there.
func (s *Store) openServer(ctx context.Context, c *pgx.ConnConfig) error {
	s.dialect = postgresDialect()
	conn, err := attend(ctx, c)
	if err != nil {
		return err
	}
	db := openPool(c)
	s.write, s.read = db, db
	s.closers = append(s.closers, db.Close)
	err = alone(ctx, db, lockSchema, func() error {
		if err := migrate(ctx, goose.DialectPostgres, db, s.log); err != nil {
			return err
		}
		_, err := s.EnsureDefaultWorkspace(ctx)
		return err
	})
	if err != nil {
		hangUp(ctx, conn)
		return err
	}
	line := newLine(c, db, s.log)
	stop, err := line.start(ctx, conn)
	if err != nil {
		return err
	}
	s.line = line
	s.closers = append(s.closers, stop)
	return nil
}

// holds takes lockInUse for as long as conn is open. It waits a moment for those who had it: they
// may have ended just now.
func holds(ctx context.Context, conn *pgx.Conn, lock string) (bool, error) {
	if _, err := conn.Exec(ctx, `SET lock_timeout = '3s'`); err != nil {
		return false, err
	}
	_, err := conn.Exec(ctx, lock, int64(lockInUse))
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "55P03" { // lock_not_available
		return false, nil
	}
	return err == nil, err
}

// alone runs do while no other server runs what needs the same lock.
func alone(ctx context.Context, db *sql.DB, key int64, do func() error) error {
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
