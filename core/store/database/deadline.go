package database

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

const (
	statementTimeout = 5 * time.Second
	// silentTimeout applies while the latest statement ran into its deadline: a request that needs
	// several statements is answered about as soon as one that needs a single one.
	silentTimeout = time.Second
	longTimeout   = 5 * time.Minute
)

// errDeadline is the cause of a context that a deadline of this package ended.
var errDeadline = errors.New("the database did not answer in time")

// deadline bounds what is asked of PostgreSQL, whose connections may go silent. The zero value and nil
// bound nothing: a file answers.
type deadline struct {
	silent atomic.Bool // the latest statement ran into its deadline
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

// limit returns a context that ends after timeout, and a function to be called with the error of what
// ran under it, which returns the error to report.
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
				d.reset() // the other connections of the pool are likely to be silent, too
			}
			return unavailable(errors.Join(errDeadline, err))
		}
		return err
	}
}
