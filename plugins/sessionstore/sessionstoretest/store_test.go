package sessionstoretest_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/sessionstoretest"
)

type (
	record = sessionstore.Record
	touch  = sessionstore.Touch
	rows   = map[string]row
)

// row is a session in the database.
type row struct {
	record
	until time.Time
}

// database is shared by the processes of a store. A statement is atomic, takes a millisecond each way, and can be
// interrupted by a kit.
type database struct {
	plugintest.Backend
	mu     sync.Mutex
	rows   rows
	writes int64
	cut    int64
	before bool
}

func (d *database) locked(do func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	do()
}

func (d *database) Start(ctx context.Context) error {
	d.locked(func() { d.cut = 0 })
	return d.Backend.Start(ctx)
}

func (d *database) Writes() (n int64) {
	d.locked(func() { n = d.writes })
	return n
}
func (d *database) Cut(n int64, before bool) {
	d.locked(func() { d.cut, d.before = d.writes+n, before })
}

// do runs a statement.
func (d *database) do(ctx context.Context, statement func(rows, time.Time)) error {
	err := d.Reach(ctx)
	if _ = kit.Pause(ctx, time.Millisecond); err == nil {
		err = d.Reach(ctx)
	}
	if err != nil {
		return plugins.Unavailable(err)
	}
	d.locked(func() {
		d.writes++
		cut := d.writes == d.cut
		if cut {
			d.cut, err = 0, plugins.ErrUnavailable
		}
		if !cut || !d.before {
			statement(d.rows, time.Now())
		}
	})
	if err != nil {
		return err
	}
	return plugins.Unavailable(kit.Pause(ctx, time.Millisecond))
}

// store is a correct session store. A liar replaces one of its functions.
type store struct {
	db *database

	key     func(id string) string
	writes  func(*record)                         // changes records that are put or replaced
	lives   func(ttl time.Duration) time.Duration // changes lifetimes
	over    func(r row, now time.Time) bool       // decides whether a session has expired
	touches func(r *row, t touch, now time.Time)  // touches a session that exists
	reads   func(*record)                         // changes records that are read
	do      func(context.Context, func(rows, time.Time)) error
	put     func(*call) error
	get     func(*call) (record, error)
	touch   func(*call) error
	remove  func(*call) error
	replace func(*call) (bool, error)
	killed  func() // drops what is lost with the process
}

func open(db *database, lie func(*store)) *store {
	s := &store{
		db: db, key: func(id string) string { return id }, writes: func(*record) {}, lives: func(ttl time.Duration) time.Duration { return ttl },
		over: func(r row, now time.Time) bool { return !now.Before(r.until) }, reads: func(*record) {}, do: db.do, killed: func() {},
		put: (*call).rightPut, get: (*call).rightGet, touch: (*call).rightTouch, remove: (*call).rightRemove, replace: (*call).rightReplace,
	}
	s.touches = func(r *row, t touch, now time.Time) {
		if t.LastAccessedAt.After(r.LastAccessedAt) {
			r.LastAccessedAt = t.LastAccessedAt
		}
		r.until = now.Add(s.lives(t.TTL))
	}
	lie(s)
	return s
}

func (*store) Durable() {}

// call is a call to any method, with the correct behavior.
type call struct {
	*store
	ctx   context.Context //nolint:containedctx // of one call
	rec   record          // only its ID for Get and Delete
	ttl   time.Duration
	owner string
	batch []touch
}

func (s *store) Put(ctx context.Context, rec record, ttl time.Duration) error {
	return s.put(&call{store: s, ctx: ctx, rec: rec, ttl: ttl})
}

func (s *store) Get(ctx context.Context, id string) (record, error) {
	return s.get(&call{store: s, ctx: ctx, rec: record{ID: id}})
}

func (s *store) Touch(ctx context.Context, batch []touch) error {
	return s.touch(&call{store: s, ctx: ctx, batch: batch})
}

func (s *store) Delete(ctx context.Context, id string) error {
	return s.remove(&call{store: s, ctx: ctx, rec: record{ID: id}})
}

func (s *store) Replace(ctx context.Context, rec record, ttl time.Duration, owner string) (bool, error) {
	return s.replace(&call{store: s, ctx: ctx, rec: rec, ttl: ttl, owner: owner})
}

func (c *call) rightPut() error {
	if err := sessionstore.CheckPut(c.rec, c.ttl); err != nil {
		return err
	}
	rec := c.rec
	c.writes(&rec)
	return c.do(c.ctx, func(all rows, now time.Time) { all[c.key(c.rec.ID)] = row{rec, now.Add(c.lives(c.ttl))} })
}

func (c *call) rightGet() (record, error) {
	var r row
	err := c.do(c.ctx, func(all rows, now time.Time) {
		if found, ok := all[c.key(c.rec.ID)]; ok && !c.over(found, now) {
			r = found
		}
	})
	if err == nil && r.until.IsZero() {
		err = fmt.Errorf("session: %w", plugins.ErrNotFound)
	}
	rec := r.record
	rec.ExpiresAt = r.until
	if err == nil {
		c.reads(&rec)
	}
	return rec, err
}

func (c *call) rightTouch() error {
	if err := sessionstore.CheckTouch(c.batch); err != nil {
		return err
	}
	return c.do(c.ctx, func(all rows, now time.Time) {
		for _, t := range c.batch {
			if r, ok := all[c.key(t.ID)]; ok && !c.over(r, now) {
				c.touches(&r, t, now)
				all[c.key(t.ID)] = r
			}
		}
	})
}

func (c *call) rightRemove() error {
	return c.do(c.ctx, func(all rows, _ time.Time) { delete(all, c.key(c.rec.ID)) })
}

func (c *call) rightReplace() (replaced bool, err error) {
	if err := sessionstore.CheckReplace(c.rec, c.ttl); err != nil {
		return false, err
	}
	found, rec := false, c.rec
	c.writes(&rec)
	err = c.do(c.ctx, func(all rows, now time.Time) {
		r, ok := all[c.key(rec.ID)]
		if found = ok && !c.over(r, now); !found || r.Owner != c.owner {
			return
		}
		replaced, r.record = true, rec
		if c.ttl > 0 {
			r.until = now.Add(c.lives(c.ttl))
		}
		all[c.key(rec.ID)] = r
	})
	if err == nil && !found {
		err = fmt.Errorf("session: %w", plugins.ErrNotFound)
	}
	return replaced && err == nil, err
}

// subject returns a store with two processes on one database.
func subject(lie func(*store)) sessionstoretest.Subject {
	db := &database{rows: rows{}}
	first := open(db, lie)
	return sessionstoretest.Subject{
		Store: first, Durable: true, Second: open(db, lie), Backend: db,
		Restart: func(ctx context.Context) error {
			first.killed()
			return kit.Pause(ctx, 50*time.Millisecond)
		},
	}
}
