package mcphttp

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// A server owns the sessions whose records contain its lease. The lease is a record in the session store with a short
// lifetime, which the server renews as long as it is alive. Once the lease has expired, the server is considered dead,
// and another one may take over its sessions.
const (
	leaseTime    = time.Second            // a server is considered dead this long after its last renewal
	renewTimeout = 500 * time.Millisecond // for one renewal
	leasePrefix  = "server:"              // begins the IDs of lease records; no session ID has a colon

	// renewInterval is how often a lease must be renewed.
	renewInterval = 300 * time.Millisecond
)

// serverLease is this server's lease. It is safe for concurrent use.
type serverLease struct {
	writer *sessionWriter

	renewing sync.Mutex // held while the lease is renewed or created

	mu      sync.Mutex
	record  sessionstore.Record // the record of the current lease; its ID is "" if there is none
	until   time.Time           // the lease is valid at least until then
	failing bool                // the store was unavailable at the last renewal
}

// Covers reports whether a session whose record has this owner may be served without consulting the store. While the
// store is unavailable, no other server can take a session over, so every session continues.
func (l *serverLease) Covers(owner string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failing || owner == l.record.ID && now.Before(l.until)
}

// Acquire returns the ID of the lease, renewing it if it is no longer held. The ID is "" if the store does not support
// takeovers.
func (l *serverLease) Acquire(ctx context.Context) (string, error) {
	l.mu.Lock()
	id, held := l.record.ID, time.Now().Before(l.until)
	l.mu.Unlock()
	if held {
		return id, nil
	}
	id, _, err := l.Renew(ctx)
	return id, err
}

// Renew extends the lease, or creates a new one if it has expired. It returns the lease's ID and the IDs of the
// sessions that other servers ask for.
func (l *serverLease) Renew(ctx context.Context) (id string, wanted []string, err error) {
	l.renewing.Lock()
	defer l.renewing.Unlock()
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	l.mu.Lock()
	held := l.record
	l.mu.Unlock()
	began := time.Now()
	if !l.writer.Replaces() {
		err = plugins.ErrUnimplemented
	} else {
		held, wanted, err = l.renew(ctx, held)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case errors.Is(err, plugins.ErrUnimplemented):
		l.record, l.until, l.failing = sessionstore.Record{}, time.Time{}, false
		return "", nil, nil
	case err != nil:
		l.failing = true
		return "", nil, err
	}
	l.record, l.until, l.failing = held, began.Add(leaseTime), false
	return held.ID, wanted, nil
}

// renew writes the lease's record. The record's owner is a token that changes whenever another server asks for a
// session. That server adds the session's ID to the state.
func (l *serverLease) renew(ctx context.Context, held sessionstore.Record) (sessionstore.Record, []string, error) {
	var wanted []string
	for held.ID != "" {
		next := held
		next.State = ""
		written, err := l.writer.replace(ctx, next, leaseTime, held.Owner, nothing)
		switch {
		case errors.Is(err, plugins.ErrNotFound):
			held.ID = ""
			continue
		case err != nil || written:
			return next, wanted, err
		}
		if held, err = l.writer.Find(ctx, held.ID); err != nil && !errors.Is(err, plugins.ErrNotFound) {
			return held, nil, err
		}
		wanted = strings.Fields(held.State)
	}
	made := sessionstore.Record{ID: leasePrefix + rand.Text(), Owner: rand.Text()}
	return made, nil, l.writer.put(ctx, made, leaseTime, nothing)
}

// Ask asks the server that holds a lease for a session. It returns false if the lease has expired, which means that the
// server has stopped.
func (l *serverLease) Ask(ctx context.Context, lease, session string) (alive bool, err error) {
	for {
		rec, err := l.writer.Find(ctx, lease)
		switch {
		case errors.Is(err, plugins.ErrNotFound):
			return false, nil
		case err != nil:
			return true, err
		case slices.Contains(strings.Fields(rec.State), session):
			return true, nil
		}
		token := rec.Owner
		rec.Owner, rec.State = rand.Text(), strings.TrimSpace(rec.State+" "+session)
		written, err := l.writer.replace(ctx, rec, 0, token, nothing)
		if err != nil && !errors.Is(err, plugins.ErrNotFound) || written {
			return true, err
		}
	}
}

// Release gives up the lease, so that other servers can take over every session immediately.
func (l *serverLease) Release(ctx context.Context) {
	l.renewing.Lock()
	defer l.renewing.Unlock()
	l.mu.Lock()
	id := l.record.ID
	l.record, l.until = sessionstore.Record{}, time.Time{}
	l.mu.Unlock()
	if id != "" {
		l.writer.delete(ctx, id)
	}
}

// sessionLocks holds a lock for each session that is moving from or to another server. The zero value is ready to use.
type sessionLocks struct {
	mu     sync.Mutex
	locked map[string]chan struct{} // closed when the lock is free
}

// Lock locks a session until unlock is called. It returns ctx's error if ctx ends first.
func (l *sessionLocks) Lock(ctx context.Context, id string) (unlock func(), err error) {
	for {
		l.mu.Lock()
		held, isLocked := l.locked[id]
		if !isLocked {
			break
		}
		l.mu.Unlock()
		select {
		case <-held:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	defer l.mu.Unlock()
	if l.locked == nil {
		l.locked = map[string]chan struct{}{}
	}
	free := make(chan struct{})
	l.locked[id] = free
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.locked, id)
		close(free)
	}, nil
}
