package access

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/ropewalk/ropewalk/core"
)

const (
	lookWait   = 10 * time.Second // how long a lookup may take
	staleWait  = time.Second      // how long a lookup may take if the last result can be used instead
	staleRetry = 2 * time.Second  // how long the last result is used before the next lookup
)

// known caches what the store returned. While the store cannot be read, it returns the last result for up to stale, so
// that callers with open sessions continue to be served. A forgotten result is never returned again, so a received
// revocation takes effect even then. An error that is an answer, such as core.CodeNotFound, is returned, and the last
// result is dropped.
type known[K comparable, V any] struct {
	stale   time.Duration
	onStale func(error) // called with the lookup's error if the last result is used

	mu      sync.Mutex // keeps a lookup that started before a change from being stored after it
	changes uint64     // number of changes
	entries *lru.Cache[K, entry[V]]
}

type entry[V any] struct {
	value V
	read  time.Time // when it was read from the store
	until time.Time // when to look it up again
}

func newKnown[K comparable, V any](size int, stale time.Duration, onStale func(error)) *known[K, V] {
	entries, _ := lru.New[K, entry[V]](size) // the only error is a size below 1
	return &known[K, V]{stale: stale, onStale: onStale, entries: entries}
}

// get returns the value of key. It calls read if the cached value is older than life.
func (c *known[K, V]) get(ctx context.Context, key K, life time.Duration, read func(context.Context) (V, error)) (V, error) {
	last, ok := c.entries.Get(key)
	now := time.Now()
	if ok && now.Before(last.until) {
		return last.value, nil
	}
	usable := ok && now.Sub(last.read) < c.stale
	since := c.change()
	value, err := c.look(ctx, usable, read)
	switch {
	case err == nil:
		c.put(key, entry[V]{value, now, time.Now().Add(life)}, since)
		return value, nil
	case isAnswer(err):
		c.entries.Remove(key)
		return value, err
	case usable && ctx.Err() == nil && c.put(key, entry[V]{last.value, last.read, time.Now().Add(staleRetry)}, since):
		c.onStale(err)
		return last.value, nil
	}
	return value, err
}

// look calls read with a timeout, which is short if there is a last result to use instead.
func (*known[K, V]) look(ctx context.Context, usable bool, read func(context.Context) (V, error)) (V, error) {
	wait := lookWait
	if usable {
		wait = staleWait
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return read(ctx)
}

// isAnswer reports whether an error is an answer from the store, as opposed to a failure to read the store.
func isAnswer(err error) bool {
	code := core.CodeOf(err)
	return code != core.CodeUnavailable && code != core.CodeInternal
}

// change returns the number of changes so far.
func (c *known[K, V]) change() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changes
}

// put stores an entry unless something has changed since, and reports whether it did.
func (c *known[K, V]) put(key K, e entry[V], since uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes != since {
		return false
	}
	c.entries.Add(key, e)
	return true
}

// update changes the value of a key in place, if it is cached.
func (c *known[K, V]) update(key K, change func(*V)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries.Peek(key); ok {
		change(&e.value)
		c.entries.Add(key, e)
	}
}

// forget drops the entries that match.
func (c *known[K, V]) forget(match func(K, V) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	for _, key := range c.entries.Keys() {
		if e, ok := c.entries.Peek(key); ok && match(key, e.value) {
			c.entries.Remove(key)
		}
	}
}

// staleLogInterval is the minimum time between two log messages that the store cannot be read.
const staleLogInterval = 30 * time.Second

// staleLog logs that values from before a store outage are in use, at most once per staleLogInterval. The zero value is
// ready to use.
type staleLog struct {
	mu   sync.Mutex
	next time.Time
}

func (l *staleLog) report(log hclog.Logger, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); !now.Before(l.next) {
		l.next = now.Add(staleLogInterval)
		log.Warn("the database is unavailable; using users and memberships as they were last read", "error", err)
	}
}
