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

// Explain adds advice for the operator to an error of the database itself. The error is core.CodeUnavailable if
// PostgreSQL cannot be reached at the moment, or the disk is full.
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
		if isUnavailable(e.Code) {
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

// Damaged reports whether err means that a file is damaged or is not an SQLite database.
func Damaged(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && (e.Code()&0xff == sqlite3.SQLITE_NOTADB || e.Code()&0xff == sqlite3.SQLITE_CORRUPT)
}

// FileFull reports whether err means that the disk has no space for a file.
func FileFull(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && e.Code()&0xff == sqlite3.SQLITE_FULL || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

func fileAdvice(code int) string {
	switch code {
	case sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT:
		return damaged + "; restore a backup, or move it away to start from scratch"
	case sqlite3.SQLITE_READONLY:
		return "the file or its folder is read-only, so nothing was changed; make it writable by the server's user"
	case sqlite3.SQLITE_CANTOPEN:
		return "the file cannot be opened; check that its folder exists and is writable by the server's user"
	case sqlite3.SQLITE_IOERR:
		return "the disk reported an error; nothing was acknowledged"
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return "another program has locked the database; stop it and try again"
	}
	return ""
}

// serverAdvice returns the advice for a PostgreSQL error code (PostgreSQL manual, appendix A).
func serverAdvice(code string) string {
	switch code {
	case "28P01", "28000":
		return "PostgreSQL rejected the login; check the user and password in storage.url"
	case "3D000":
		return "there is no such database; create it with createdb, or change storage.url"
	case "57014":
		return "the statement took too long and was cancelled; nothing was changed"
	case "42501":
		return "the user in storage.url lacks a privilege; it must be able to create tables in its schema"
	case "25006":
		return "PostgreSQL is read-only and may be a standby; point storage.url at the primary"
	}
	return ""
}

// isUnavailable reports whether a code means that the server is starting or stopping, has no free connections, or that
// the connection was lost.
func isUnavailable(code string) bool {
	return strings.HasPrefix(code, "08") || strings.HasPrefix(code, "57P0") || code == "53300"
}

// unreachable reports whether an error concerns the connection itself. File errors do not, although a
// system error number is a net.Error, and neither do calls that were cancelled or ran out of time.
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

// Visible adds the cause, which callers do not see, to an error for an operator.
func Visible(err error) error {
	if e, ok := errors.AsType[*core.Error](err); ok && e.Unwrap() != nil {
		return fmt.Errorf("%w: %w", err, cause{e.Unwrap()})
	}
	return err
}

// cause formats an error as one line without repetitions: if TLS is optional, pgx connects twice and reports both
// failures.
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

// diskFull returns the error for a full disk.
func diskFull(cause error) error {
	return core.Wrap(core.CodeUnavailable, cause, "the database's disk is full, so nothing was changed; free some space and try again")
}
