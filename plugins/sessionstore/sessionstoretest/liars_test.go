package sessionstoretest_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/sessionstoretest"
)

func TestEveryPropertyCitesTheContract(t *testing.T) {
	t.Parallel()
	plugintest.Sentences(t, "sessionstore")
}

func TestACorrectStorePassesAndEveryPropertyIsJudged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, p := range sessionstoretest.Properties() {
			if o := p.Judge(t.Context(), plugintest.Trial(kit.Normal), subject(func(*store) {})); o.Verdict != kit.Pass {
				t.Errorf("%s: %s %s\n%v", p.Name, o.Verdict, o.Why, o.Err)
			}
		}
	})
}

func TestEachFaultyImplementationIsCaughtByItsProperty(t *testing.T) {
	t.Parallel()
	open := func(_ *testing.T, change func(*store)) sessionstoretest.Subject { return subject(change) }
	plugintest.Liars(t, plugintest.Bubble, sessionstoretest.Properties(), plugintest.Trial(kit.Normal), open, lies())
}

// withoutCapabilities hides the optional capabilities of a store.
func withoutCapabilities(s *sessionstoretest.Subject) {
	*s = sessionstoretest.Subject{Store: struct{ sessionstore.Store }{s.Store}}
}

// A store that is correct but unusual must pass.
func TestCorrectButUnusualStoresPass(t *testing.T) {
	t.Parallel()
	limits := map[string]func(*sessionstoretest.Subject){
		"one with a single writer":                               func(s *sessionstoretest.Subject) { s.Second, s.Exclusive = nil, true },
		"one without any optional capability":                    withoutCapabilities,
		"one that drops owner and state, which it need not keep": withoutCapabilities,
	}
	for name, change := range map[string]func(*store){
		"one that takes 300 ms for a call": does(func(s *store, ctx context.Context, statement func(rows, time.Time)) error {
			if err := kit.Pause(ctx, 300*time.Millisecond); err != nil {
				return plugins.Unavailable(err)
			}
			return s.db.do(ctx, statement)
		}),
		"one that rounds lifetimes up to seconds":   lives(func(ttl time.Duration) time.Duration { return (ttl + time.Second - 1).Truncate(time.Second) }),
		"one whose clock is two hours behind":       reads(func(r *record) { r.ExpiresAt = r.ExpiresAt.Add(-2 * time.Hour) }),
		"one that does not know when lifetimes end": reads(func(r *record) { r.ExpiresAt = time.Time{} }),
		"one that deletes expired sessions once a minute": func(s *store) {
			purged := time.Time{}
			before(func(s *store, all rows, now time.Time) {
				if now.Sub(purged) > time.Minute {
					maps.DeleteFunc(all, func(_ string, r row) bool { return s.over(r, now) })
					purged = now
				}
			})(s)
		},
		"one with a single writer":                               func(*store) {},
		"one without any optional capability":                    func(*store) {},
		"one that drops owner and state, which it need not keep": writes(func(r *record) { r.Owner, r.State = "", "" }),
		"one that touches the sessions of a batch one by one": func(s *store) {
			s.touch = func(c *call) error {
				if err := sessionstore.CheckTouch(c.batch); err != nil {
					return err
				}
				for _, t := range c.batch {
					c.batch = []touch{t}
					if err := c.rightTouch(); err != nil {
						return err
					}
				}
				return nil
			}
		},
		"one that touches the sessions of a batch at the same time": touchesAll(func(c *call) error {
			if err := sessionstore.CheckTouch(c.batch); err != nil {
				return err
			}
			errs := make([]error, len(c.batch))
			var all sync.WaitGroup
			for i := range c.batch {
				one := *c
				one.batch = c.batch[i : i+1]
				all.Go(func() { errs[i] = one.rightTouch() })
			}
			all.Wait()
			return errors.Join(errs...)
		}),
		"one that replaces what it has read if nothing changed since, and tries again": replaces(func(c *call) (swapped bool, err error) {
			for err = sessionstore.CheckReplace(c.rec, c.ttl); !swapped && err == nil; {
				var before record
				if before, err = c.rightGet(); err != nil || before.Owner != c.owner {
					return false, err
				}
				err = c.do(c.ctx, func(all rows, now time.Time) {
					held, ok := all[c.rec.ID]
					if swapped = ok && held.until.Equal(before.ExpiresAt) && held.LastAccessedAt.Equal(before.LastAccessedAt) && held.Subject == before.Subject; swapped {
						held.record = c.rec
						if c.ttl > 0 {
							held.until = now.Add(c.ttl)
						}
						all[c.rec.ID] = held
					}
				})
			}
			return swapped && err == nil, err
		}),
		"one that does not know when the lifetime of a replaced session ends": func(s *store) {
			var replaced sync.Map
			s.put = func(c *call) error { replaced.Delete(c.rec.ID); return c.rightPut() }
			s.replace = func(c *call) (bool, error) { replaced.Store(c.rec.ID, true); return c.rightReplace() }
			s.reads = func(r *record) {
				if _, ok := replaced.Load(r.ID); ok {
					r.ExpiresAt = time.Time{}
				}
			}
		},
		"one that returns the error of the deadline": does(func(s *store, ctx context.Context, statement func(rows, time.Time)) error {
			if err := s.db.do(ctx, statement); err == nil || ctx.Err() == nil {
				return err
			}
			return ctx.Err()
		}),
		"one that says in whole seconds when lifetimes end": reads(func(r *record) { r.ExpiresAt = r.ExpiresAt.Truncate(time.Second) }),
		"one that marks what it deletes": removes(func(c *call) error {
			return c.do(c.ctx, func(all rows, _ time.Time) {
				if r, ok := all[c.rec.ID]; ok {
					r.until = time.Time{}.Add(1)
					all[c.rec.ID] = r
				}
			})
		}),
		"one that keys by a digest of the id": keys(func(id string) string { d := sha256.Sum256([]byte(id)); return hex.EncodeToString(d[:]) }),
		"one that reads before it replaces, with a lock of its process": func(s *store) {
			lock := make(chan struct{}, 1)
			s.replace = func(c *call) (bool, error) {
				lock <- struct{}{}
				defer func() { <-lock }()
				if err := sessionstore.CheckReplace(c.rec, c.ttl); err != nil {
					return false, err
				}
				if has, err := c.rightGet(); err != nil || has.Owner != c.owner {
					return false, err
				}
				return c.rightReplace()
			}
		},
		"one that never answers while its backend reconnects": func(s *store) {
			var lost time.Time
			s.do = func(ctx context.Context, statement func(rows, time.Time)) error {
				if time.Since(lost) < 3*time.Second {
					return plugins.ErrUnavailable
				}
				err := s.db.do(ctx, statement)
				if err != nil && ctx.Err() == nil {
					lost = time.Now()
				}
				return err
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, p := range sessionstoretest.Properties() {
				synctest.Test(t, func(t *testing.T) {
					s := subject(change)
					if limit := limits[name]; limit != nil {
						limit(&s)
					}
					if o := p.Judge(t.Context(), plugintest.Trial(kit.Quick), s); o.Verdict != kit.Pass && o.Verdict != kit.NotApplicable {
						t.Errorf("%s: %s %s\n%v", p.Name, o.Verdict, o.Why, o.Err)
					}
				})
			}
		})
	}
}

// caching makes a Get return the result of an earlier Get for up to the given time; it caches only records or, if
// missing is set, only "not found".
func caching(while time.Duration, missing bool) func(*store) {
	return func(s *store) {
		type cached struct {
			rec record
			err error
			at  time.Time
		}
		var known sync.Map
		s.get = func(c *call) (record, error) {
			if has, ok := known.Load(c.rec.ID); ok && time.Since(has.(cached).at) < while {
				return has.(cached).rec, has.(cached).err
			}
			rec, err := c.rightGet()
			if err == nil && !missing || errors.Is(err, plugins.ErrNotFound) && missing {
				known.Store(c.rec.ID, cached{rec, err, time.Now()})
			}
			return rec, err
		}
	}
}

// behind acknowledges some writes before they are written, so that they are lost if the process ends.
func behind(s *store, what string) {
	var mu sync.Mutex
	var waiting []func(rows, time.Time)
	s.killed = func() {
		mu.Lock()
		defer mu.Unlock()
		waiting = nil
	}
	right := s.db.do
	later := func(statement func(rows, time.Time)) error {
		mu.Lock()
		defer mu.Unlock()
		waiting = append(waiting, statement)
		return nil
	}
	s.do = func(ctx context.Context, statement func(rows, time.Time)) error {
		return right(ctx, func(all rows, now time.Time) {
			mu.Lock()
			defer mu.Unlock()
			mine := maps.Clone(all)
			for _, w := range waiting {
				w(mine, now)
			}
			if len(waiting) > 3 {
				clear(all)
				maps.Copy(all, mine)
				waiting = nil
			}
			statement(mine, now)
			if len(waiting) == 0 {
				clear(all)
				maps.Copy(all, mine)
			}
		})
	}
	switch what {
	case "put":
		s.put = func(c *call) error {
			until := time.Now().Add(c.ttl)
			return later(func(all rows, _ time.Time) { all[c.rec.ID] = row{c.rec, until} })
		}
	case "touch":
		s.touch = func(c *call) error {
			at := time.Now()
			return later(func(all rows, _ time.Time) {
				for _, t := range c.batch {
					if r, ok := all[t.ID]; ok {
						s.touches(&r, t, at)
						all[t.ID] = r
					}
				}
			})
		}
	case "delete":
		s.remove = func(c *call) error {
			return later(func(all rows, _ time.Time) { delete(all, c.rec.ID) })
		}
	}
}
