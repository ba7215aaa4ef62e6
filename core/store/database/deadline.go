package database

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

const (
	statementTimeout = 5 * time.Second
	// silentTimeout applies after a statement has exceeded its deadline, until one succeeds, so that a request with
	// several statements fails about as soon as a request with a single one.
	silentTimeout = time.Second
	longTimeout   = 5 * time.Minute
)

// errDeadline is the cause of contexts that a deadline of this package has ended.
var errDeadline = errors.New("the database did not respond in time")

// deadline limits how long PostgreSQL statements may take, because connections may go silent. A nil deadline limits
// nothing, for files.
type deadline struct {
	silent atomic.Bool // the latest statement exceeded its deadline
	reset  func()      // closes the idle connections of the pool
}

func (d *deadline) short(ctx context.Context) (context.Context, func(error) error) {
	if d == nil {
		return ctx, keepError
	}
	timeout := statementTimeout
	if d.silent.Load() {
		timeout = silentTimeout
	}
	return d.limit(ctx, timeout)
}

func (d *deadline) long(ctx context.Context) (context.Context, func(error) error) {
	if d == nil {
		return ctx, keepError
	}
	return d.limit(ctx, longTimeout)
}

func keepError(err error) error { return err }

// limit returns a context that ends after timeout, and a function that must be called with the error of the
// statement that ran under the context. The function returns the error to report.
func (d *deadline) limit(ctx context.Context, timeout time.Duration) (context.Context, func(error) error) {
	limited, cancel := context.WithTimeoutCause(ctx, timeout, errDeadline)
	return limited, func(err error) error {
		defer cancel()
		if err == nil {
			d.silent.Store(false)
			return nil
		}
		if ctx.Err() == nil && errors.Is(context.Cause(limited), errDeadline) {
			if !d.silent.Swap(true) && d.reset != nil {
				d.reset() // the other connections of the pool are probably silent too
			}
			return unavailable(errors.Join(errDeadline, err))
		}
		return err
	}
}
