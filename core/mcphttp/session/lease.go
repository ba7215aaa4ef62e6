package session

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

// A server owns the sessions whose records name its lease. The lease is a record of the session store
// with a short lifetime, which the server renews for as long as it lives: once it is over the server is
// dead, and another one may take its sessions over.
const (
	leaseTime    = time.Second            // after its last renewal a server counts as dead
	renewTimeout = 500 * time.Millisecond // for one renewal
	leasePrefix  = "server:"              // of the ids of the records; no session id has a colon

	// RenewInterval is how often a lease is to be renewed.
	RenewInterval = 300 * time.Millisecond
)

// Lease is this server's lease. It is safe for concurrent use.
type Lease struct {
	writer *Writer

	renewing sync.Mutex // held while the lease is renewed or made

	mu      sync.Mutex
	record  sessionstore.Record // of the lease that is held; its ID is "" for none
	until   time.Time           // the lease is held until then, whatever the store says
	failing bool                // the store could not be asked at the last renewal
}

// NewLease returns the lease of a server. Nothing is written before the first Acquire.
func NewLease(w *Writer) *Lease { return &Lease{writer: w} }

// Covers reports whether a session of an owner may be served without asking the store. While the store is
// unavailable no other server can take a session over, and every session goes on.
func (l *Lease) Covers(owner string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failing || owner == l.record.ID && now.Before(l.until)
}

// Acquire returns the id of a lease that is held now; "" when the store cannot hand over sessions.
func (l *Lease) Acquire(ctx context.Context) (string, error) {
	l.mu.Lock()
	id, held := l.record.ID, time.Now().Before(l.until)
	l.mu.Unlock()
	if held {
		return id, nil
	}
	id, _, err := l.Renew(ctx)
	return id, err
}

// Renew prolongs the lease, or makes another one when it is over, and returns its id and the ids of the
// sessions that other servers ask for.
func (l *Lease) Renew(ctx context.Context) (id string, wanted []string, err error) {
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

// renew writes the record of the lease. Its owner is a token that changes whenever another server asks for
// a session, whose id it then adds to the state.
func (l *Lease) renew(ctx context.Context, held sessionstore.Record) (sessionstore.Record, []string, error) {
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

// Ask asks the server that holds a lease for a session. It returns false when that lease is over: the
// server has ended.
func (l *Lease) Ask(ctx context.Context, lease, session string) (alive bool, err error) {
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

// Release gives the lease up: other servers may take over every session at once.
func (l *Lease) Release(ctx context.Context) {
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

// Locks holds a lock for each session that is being moved from or to another server. The zero value has
// none.
type Locks struct {
	mu     sync.Mutex
	locked map[string]chan struct{} // closed when the lock is free
}

// Lock locks a session until the returned function is called. The error is ctx's.
func (l *Locks) Lock(ctx context.Context, id string) (unlock func(), err error) {
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
