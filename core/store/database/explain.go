package database

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/ropewalk/ropewalk/core"
)

// Explain adds what an operator can do about an error of the database itself. A PostgreSQL that cannot be
// reached at the moment, and a disk that is full, are core.CodeUnavailable.
func Explain(err error) error {
	if err == nil {
		return nil
	}
	advice := ""
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		code := e.Code() & 0xff // the low byte is the primary code
		if code == sqlite3.SQLITE_FULL {
			return diskFull(err)
		}
		advice = fileAdvice(code)
	} else if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		if away(e.Code) {
			return unavailable(err)
		}
		if e.Code == "53100" {
			return diskFull(err)
		}
		advice = serverAdvice(e.Code)
	} else if unreachable(err) {
		return unavailable(err)
	}
	if advice == "" {
		return err
	}
	return fmt.Errorf("%s (%w)", advice, err)
}

const damaged = "the file is damaged or is not a database"

// Damaged says whether err is about a file that is damaged or not a database of SQLite.
func Damaged(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && (e.Code()&0xff == sqlite3.SQLITE_NOTADB || e.Code()&0xff == sqlite3.SQLITE_CORRUPT)
}

// FileFull says whether err is about a file that the disk has no space for.
func FileFull(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && e.Code()&0xff == sqlite3.SQLITE_FULL || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

func fileAdvice(code int) string {
	switch code {
	case sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT:
		return damaged + ": restore a backup, or move it away to start with an empty state"
	case sqlite3.SQLITE_READONLY:
		return "the file or its folder is read-only: nothing was changed; give the server the right to write there"
	case sqlite3.SQLITE_CANTOPEN:
		return "the file cannot be opened: check that its folder exists and that the server may write there"
	case sqlite3.SQLITE_IOERR:
		return "the disk reports an error: nothing was acknowledged"
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return "another program holds the database: stop it and try again"
	}
	return ""
}

// serverAdvice is about PostgreSQL's codes (its manual, appendix A).
func serverAdvice(code string) string {
	switch code {
	case "28P01", "28000":
		return "PostgreSQL refuses the login: check user and password in storage.url"
	case "3D000":
		return "there is no such database: make it with createdb, or change storage.url"
	case "57014":
		return "the statement took too long and was cancelled: nothing was changed"
	case "42501":
		return "the user of storage.url lacks a right: it must be able to make tables in its schema"
	case "25006":
		return "PostgreSQL is read-only, a standby perhaps: point storage.url at the primary"
	}
	return ""
}

// away reports whether a code is that of a server that is starting, stopping, full, or just lost its
// connection.
func away(code string) bool {
	return strings.HasPrefix(code, "08") || strings.HasPrefix(code, "57P0") || code == "53300"
}

// unreachable reports whether an error is one of the connection itself. An error of a file is not, though
// an error number of the system is a net.Error; nor is a caller that gave up or ran out of time.
func unreachable(err error) bool {
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	_, network := errors.AsType[*net.OpError](err)
	switch {
	case errors.Is(err, context.Canceled):
		return false
	case connecting, network, errors.Is(err, driver.ErrBadConn), errors.Is(err, io.ErrUnexpectedEOF):
		return true
	}
	return pgconn.SafeToRetry(err)
}

// Visible adds the cause that callers are not shown, for an operator.
func Visible(err error) error {
	if e, ok := errors.AsType[*core.Error](err); ok && e.Unwrap() != nil {
		return fmt.Errorf("%w: %w", err, cause{e.Unwrap()})
	}
	return err
}

// cause is an error in one line that says everything once: where TLS is optional pgx connects twice, and says of both
// attempts what went wrong.
type cause struct{ error }

func (c cause) Error() string {
	var lines []string
	for line := range strings.Lines(c.error.Error()) {
		if line = strings.TrimSpace(line); line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return strings.TrimSpace(lines[0] + " " + strings.Join(lines[1:], "; "))
}

func (c cause) Unwrap() error { return c.error }

func unavailable(cause error) error {
	return core.Wrap(core.CodeUnavailable, cause, "PostgreSQL (storage.url) cannot be reached at the moment").WithRetryAfter(2 * time.Second)
}

// diskFull is the error about a disk that takes no more.
func diskFull(cause error) error {
	return core.Wrap(core.CodeUnavailable, cause, "the disk of the database is full: nothing was changed; free some space and try again")
}
