package relyingparty

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sync/singleflight"
)

// renewEvery is the minimum time between two fetches of one document. Together with the initial load, that makes at
// most six in any minute.
const renewEvery = 12 * time.Second

// cache holds one document that the provider publishes. It is fetched on first use, refreshed in the background
// once it is older than fresh, and used for up to keep while the provider is unavailable. It is fetched at most
// once per renewEvery. A fetch uses the cache's context, not a caller's.
type cache[T any] struct {
	what  string // for log lines: "keys"
	fetch func(context.Context) (T, error)
	fresh time.Duration
	keep  time.Duration
	life  context.Context
	log   hclog.Logger

	inFlight singleflight.Group

	mu      sync.Mutex
	value   T
	fetched time.Time // when value was fetched; zero if there is none
	next    time.Time // no fetch before this time
	failed  error     // the error of the last fetch; nil if it succeeded
}

// waiting is the error of an earlier failed fetch, returned while it is too early for the next one. For a document that
// depends on this one, it does not count as a fetch: both may be fetched as soon as this one is due.
type waiting struct {
	error
	until time.Time
}

// Unwrap returns the error of the earlier fetch.
func (w *waiting) Unwrap() error { return w.error }

// get returns the value, fetching it only if there is no usable one.
func (c *cache[T]) get(ctx context.Context) (T, error) {
	value, _, err := c.dated(ctx)
	return value, err
}

// dated does what get does, and also returns the age of the value.
func (c *cache[T]) dated(ctx context.Context) (value T, age time.Duration, err error) {
	c.mu.Lock()
	value, age = c.value, time.Since(c.fetched)
	due, usable := !time.Now().Before(c.next), !c.fetched.IsZero() && age <= c.keep
	c.mu.Unlock()
	if !usable {
		value, err = c.renew(ctx)
		return value, 0, err
	}
	if age > c.fresh && due {
		c.inFlight.DoChan("", c.attempt)
	}
	return value, age, nil
}

// renew fetches the value. If the last fetch was less than renewEvery ago, it returns the result of that
// fetch instead. The fetch that first loads the value does not count. A fetch takes at most requestTimeout;
// if the provider is slower and the caller has more time, renew waits for the next fetch.
func (c *cache[T]) renew(ctx context.Context) (T, error) {
	var none T
	for {
		select {
		case <-ctx.Done():
			return none, unavailable("the provider's %s did not arrive in time: %w", c.what, ctx.Err())
		case done := <-c.inFlight.DoChan("", c.attempt):
			if done.Err == nil {
				c.mu.Lock()
				defer c.mu.Unlock()
				return c.value, nil
			}
			if !errors.Is(done.Err, context.DeadlineExceeded) || !c.waitsForNext(ctx) {
				return none, done.Err
			}
		}
	}
}

// waitsForNext waits until the next fetch may start. It returns false immediately if that is after ctx's
// deadline.
func (c *cache[T]) waitsForNext(ctx context.Context) bool {
	c.mu.Lock()
	next := c.next
	c.mu.Unlock()
	if deadline, ok := ctx.Deadline(); !ok || deadline.Before(next) {
		return false
	}
	timer := time.NewTimer(time.Until(next))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return true
}

func (c *cache[T]) attempt() (any, error) {
	c.mu.Lock()
	if time.Now().Before(c.next) {
		defer c.mu.Unlock()
		if c.failed != nil {
			return nil, &waiting{c.failed, c.next}
		}
		return nil, nil
	}
	first := c.fetched.IsZero()
	began := time.Now()
	c.next = began.Add(renewEvery)
	c.mu.Unlock()

	ctx, cancel := context.WithTimeout(c.life, requestTimeout)
	defer cancel()
	value, err := c.fetch(ctx)

	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		// c.next counts from the start of the fetch, even if the fetch used up all of requestTimeout. The
		// provider is then asked again soon after it recovers.
		if needed, ok := errors.AsType[*waiting](err); ok {
			c.next = needed.until
		}
		c.failed = unavailable("the provider's %s could not be fetched: %w", c.what, err)
		kept := "the last copy stays in use"
		if first {
			kept = "there is no earlier copy"
		}
		c.log.Warn("The identity provider did not return its "+c.what+"; "+kept+".", "error", err)
		return nil, c.failed
	}
	c.value, c.fetched, c.failed = value, time.Now(), nil
	if first {
		c.next = time.Time{}
	}
	return nil, nil
}
