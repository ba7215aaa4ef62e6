package sessionstoretest_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/sessionstoretest"
)

// row is a session in the database.
type row struct {
	sessionstore.Record
	until time.Time
}

// database is shared by the processes of a store. A statement is atomic, takes a millisecond each way, and can be
// interrupted by a kit.
type database struct {
	mu      sync.Mutex
	rows    map[string]row
	stopped bool
	stalled chan struct{}
	writes  int64
	cut     int64
	before  bool
}

func (d *database) locked(do func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	do()
}

func (d *database) Stop(context.Context) error {
	d.locked(func() { d.stopped = true })
	return nil
}

func (d *database) Stall(context.Context) error {
	d.locked(func() { d.stalled = make(chan struct{}) })
	return nil
}

func (d *database) Start(context.Context) error {
	d.locked(func() {
		d.stopped, d.cut = false, 0
		if d.stalled != nil {
			close(d.stalled)
			d.stalled = nil
		}
	})
	return nil
}

func (d *database) Writes() (n int64) {
	d.locked(func() { n = d.writes })
	return n
}
func (d *database) CutAfter(n int64)  { d.locked(func() { d.cut, d.before = d.writes+n, false }) }
func (d *database) CutBefore(n int64) { d.locked(func() { d.cut, d.before = d.writes+n, true }) }

// do runs a statement.
func (d *database) do(ctx context.Context, statement func(rows map[string]row, now time.Time)) error {
	var stalled chan struct{}
	d.locked(func() { stalled = d.stalled })
	if stalled != nil {
		select {
		case <-stalled:
		case <-ctx.Done():
			return plugins.Unavailable(ctx.Err())
		}
	}
	if !nap(ctx, time.Millisecond) {
		return plugins.Unavailable(ctx.Err())
	}
	var err error
	d.locked(func() {
		if err = ctx.Err(); d.stopped || err != nil {
			err = plugins.ErrUnavailable
			return
		}
		d.writes++
		cut := d.writes == d.cut
		if cut {
			d.cut, err = 0, plugins.ErrUnavailable
		}
		if !cut || !d.before {
			statement(d.rows, time.Now())
		}
	})
	if err == nil && !nap(ctx, time.Millisecond) {
		err = plugins.Unavailable(ctx.Err())
	}
	return err
}

// nap waits for d and reports whether ctx has not ended.
func nap(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// store is a correct session store. A liar replaces one of its functions.
type store struct {
	db *database

	key     func(id string) string
	writes  func(*sessionstore.Record)                           // changes records that are put or replaced
	lives   func(method string, ttl time.Duration) time.Duration // changes lifetimes
	over    func(r row, now time.Time) bool                      // decides whether a session has expired
	touches func(r *row, t sessionstore.Touch, now time.Time)    // touches a session that exists
	reads   func(ctx context.Context, rec *sessionstore.Record)  // changes records that are read
	do      func(context.Context, func(map[string]row, time.Time)) error
	put     func(context.Context, sessionstore.Record, time.Duration) error
	get     func(context.Context, string) (sessionstore.Record, error)
	touch   func(context.Context, []sessionstore.Touch) error
	remove  func(context.Context, string) error
	replace func(context.Context, sessionstore.Record, time.Duration, string) (bool, error)
	killed  func() // drops what is lost with the process
}

func open(db *database, lie func(*store)) *store {
	s := &store{
		db: db, key: func(id string) string { return id }, writes: func(*sessionstore.Record) {}, lives: func(_ string, ttl time.Duration) time.Duration { return ttl },
		over: func(r row, now time.Time) bool { return !now.Before(r.until) }, reads: func(context.Context, *sessionstore.Record) {}, do: db.do, killed: func() {},
	}
	s.touches = func(r *row, t sessionstore.Touch, now time.Time) {
		if t.LastAccessedAt.After(r.LastAccessedAt) {
			r.LastAccessedAt = t.LastAccessedAt
		}
		r.until = now.Add(s.lives("touch", t.TTL))
	}
	s.put, s.get, s.touch, s.remove, s.replace = s.rightPut, s.rightGet, s.rightTouch, s.rightRemove, s.rightReplace
	lie(s)
	return s
}

func (*store) Durable() {}

func (s *store) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	return s.put(ctx, rec, ttl)
}
func (s *store) Get(ctx context.Context, id string) (sessionstore.Record, error) {
	return s.get(ctx, id)
}
func (s *store) Touch(ctx context.Context, batch []sessionstore.Touch) error {
	return s.touch(ctx, batch)
}
func (s *store) Delete(ctx context.Context, id string) error { return s.remove(ctx, id) }
func (s *store) Replace(ctx context.Context, rec sessionstore.Record, ttl time.Duration, owner string) (bool, error) {
	return s.replace(ctx, rec, ttl, owner)
}

func (s *store) rightPut(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	if err := sessionstore.CheckPut(rec, ttl); err != nil {
		return err
	}
	key := s.key(rec.ID)
	s.writes(&rec)
	return s.do(ctx, func(rows map[string]row, now time.Time) { rows[key] = row{rec, now.Add(s.lives("put", ttl))} })
}

func (s *store) rightGet(ctx context.Context, id string) (sessionstore.Record, error) {
	var r row
	err := s.do(ctx, func(rows map[string]row, now time.Time) {
		if found, ok := rows[s.key(id)]; ok && !s.over(found, now) {
			r = found
		}
	})
	if err == nil && r.until.IsZero() {
		err = fmt.Errorf("session: %w", plugins.ErrNotFound)
	}
	rec := r.Record
	rec.ExpiresAt = r.until
	if err == nil {
		s.reads(ctx, &rec)
	}
	return rec, err
}

func (s *store) rightTouch(ctx context.Context, batch []sessionstore.Touch) error {
	if err := sessionstore.CheckTouch(batch); err != nil {
		return err
	}
	return s.do(ctx, func(rows map[string]row, now time.Time) {
		for _, t := range batch {
			if r, ok := rows[s.key(t.ID)]; ok && !s.over(r, now) {
				s.touches(&r, t, now)
				rows[s.key(t.ID)] = r
			}
		}
	})
}

func (s *store) rightRemove(ctx context.Context, id string) error {
	return s.do(ctx, func(rows map[string]row, _ time.Time) { delete(rows, s.key(id)) })
}

func (s *store) rightReplace(ctx context.Context, rec sessionstore.Record, ttl time.Duration, owner string) (replaced bool, err error) {
	if err := sessionstore.CheckReplace(rec, ttl); err != nil {
		return false, err
	}
	found := false
	s.writes(&rec)
	err = s.do(ctx, func(rows map[string]row, now time.Time) {
		r, ok := rows[s.key(rec.ID)]
		if found = ok && !s.over(r, now); !found || r.Owner != owner {
			return
		}
		replaced, r.Record = true, rec
		if ttl > 0 {
			r.until = now.Add(s.lives("replace", ttl))
		}
		rows[s.key(rec.ID)] = r
	})
	if err == nil && !found {
		err = fmt.Errorf("session: %w", plugins.ErrNotFound)
	}
	return replaced && err == nil, err
}

// subject returns a store with two processes on one database.
func subject(lie func(*store)) sessionstoretest.Subject {
	db := &database{rows: map[string]row{}}
	first := open(db, lie)
	return sessionstoretest.Subject{
		Store: first, Durable: true, Second: open(db, lie), Backend: db,
		Restart: func(ctx context.Context) error {
			first.killed()
			if !nap(ctx, 50*time.Millisecond) {
				return ctx.Err()
			}
			return nil
		},
	}
}
