package sessionstoretest

import (
	"context"
	"time"

	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// shared are promises about several processes on one backend.
func shared() []Check {
	const seen, survives = "A write that was answered OK is seen by every later read, from this server or another one that shares the backend",
		"survives the end of the process if the plugin has the capability \"durable\""
	return []Check{
		{Name: "another process sees a put at once", Contract: seen, Run: between(sharesPut)},
		{Name: "another process sees a replaced record at once", Contract: seen, Run: between(sharesReplacement)},
		{Name: "another process sees a touch at once", Contract: seen, Run: between(sharesTouch)},
		{Name: "another process sees a delete at once", Contract: seen, Run: between(sharesDelete)},
		{Name: "a touch of one process does not undo a delete of another", Contract: "a Touch never brings a session back", Run: between(touchKeepsDelete)},
		{Name: "a put that was acknowledged survives kill -9", Contract: survives, Run: killed(survivesPut)},
		{Name: "a touch that was acknowledged survives kill -9", Contract: survives, Run: killed(survivesTouch)},
		{Name: "a delete that was acknowledged survives kill -9", Contract: survives, Run: killed(survivesDelete)},
	}
}

// between runs look on two processes of the store.
func between(look func(ctx context.Context, one, other sessionstore.Store) error) func(context.Context, Subject) error {
	return func(ctx context.Context, s Subject) error {
		p, err := s.open(ctx)
		if err != nil {
			return err
		}
		defer p.Close()
		for _, pair := range [][2]sessionstore.Store{{s.Store, p.Store}, {p.Store, s.Store}} {
			if err := look(ctx, pair[0], pair[1]); err != nil {
				return kit.Failf("between two processes on one backend: %w", err)
			}
		}
		return nil
	}
}

func sharesPut(ctx context.Context, one, other sessionstore.Store) error {
	id := newID()
	if err := gone(ctx, other, id, "for an id that never was"); err != nil { // what a cache would remember
		return err
	}
	rec := session(id)
	if err := putAs(ctx, one, rec, long); err != nil {
		return err
	}
	return holds(ctx, other, rec)
}

func sharesReplacement(ctx context.Context, one, other sessionstore.Store) error {
	rec, err := put(ctx, one, long)
	if err != nil {
		return err
	}
	if err := holds(ctx, other, rec); err != nil {
		return err
	}
	rec.Subject = "user_02"
	if err := putAs(ctx, one, rec, long); err != nil {
		return err
	}
	return holds(ctx, other, rec)
}

func sharesTouch(ctx context.Context, one, other sessionstore.Store) error {
	rec, err := put(ctx, one, long)
	if err != nil {
		return err
	}
	if err := holds(ctx, other, rec); err != nil {
		return err
	}
	want := rec.LastAccessedAt.Add(time.Second)
	if err := touch(ctx, one, sessionstore.Touch{ID: rec.ID, LastAccessedAt: want, TTL: long}); err != nil {
		return err
	}
	at, err := lastAccessed(ctx, other, rec.ID)
	if err == nil && !at.Equal(want) {
		return kit.Failf("LastAccessedAt must be %s, the time of the Touch; it is %s", want, at)
	}
	return err
}

func sharesDelete(ctx context.Context, one, other sessionstore.Store) error {
	rec, err := put(ctx, one, long)
	if err != nil {
		return err
	}
	if err := holds(ctx, other, rec); err != nil {
		return err
	}
	if err := one.Delete(ctx, rec.ID); err != nil {
		return kit.Failf("Delete failed: %w", err)
	}
	return gone(ctx, other, rec.ID, "after a Delete")
}

func touchKeepsDelete(ctx context.Context, one, other sessionstore.Store) error {
	rec, err := put(ctx, one, long)
	if err != nil {
		return err
	}
	if err := holds(ctx, other, rec); err != nil {
		return err
	}
	if err := one.Delete(ctx, rec.ID); err != nil {
		return kit.Failf("Delete failed: %w", err)
	}
	if err := touch(ctx, other, sessionstore.Touch{ID: rec.ID, LastAccessedAt: rec.LastAccessedAt.Add(time.Second), TTL: long}); err != nil {
		return err
	}
	return gone(ctx, one, rec.ID, "after a Delete, whatever the other process touches")
}

// killed gives write a process of its own and, once it is killed, look another one. It does so a few
// times: what is written behind is lost now and then only.
func killed(attempt func(ctx context.Context, doomed sessionstore.Store, kill func(), survivor sessionstore.Store) error) func(context.Context, Subject) error {
	return func(ctx context.Context, s Subject) error {
		if s.Exclusive && s.Durable {
			return restarted(ctx, s, attempt)
		}
		for range 3 {
			p, err := s.open(ctx)
			if err != nil {
				return err
			}
			if p.Kill == nil {
				p.Close()
				return kit.Skip("the second process cannot be killed")
			}
			err = attempt(ctx, p.Store, p.Kill, s.Store)
			p.Close()
			if err != nil {
				return kit.Failf("after kill -9 of the process that had acknowledged it: %w", err)
			}
		}
		return nil
	}
}

// restarted is killed for a store whose backend has one process at a time.
func restarted(ctx context.Context, s Subject, attempt func(ctx context.Context, doomed sessionstore.Store, kill func(), survivor sessionstore.Store) error) error {
	if s.Restart == nil {
		return kit.Skip("the process of the store cannot be killed")
	}
	for range 3 {
		var failed error
		err := attempt(ctx, s.Store, func() { failed = s.Restart(ctx) }, s.Store)
		switch {
		case failed != nil:
			return kit.Failf("after kill -9 the next process of an exclusive store must have its backend: %w", failed)
		case err != nil:
			return kit.Failf("after kill -9 of the process that had acknowledged it: %w", err)
		}
	}
	return nil
}

func survivesPut(ctx context.Context, doomed sessionstore.Store, kill func(), survivor sessionstore.Store) error {
	rec, err := put(ctx, doomed, long)
	if err != nil {
		return err
	}
	kill()
	return holds(ctx, survivor, rec)
}

func survivesTouch(ctx context.Context, doomed sessionstore.Store, kill func(), survivor sessionstore.Store) error {
	rec, err := put(ctx, survivor, long)
	if err != nil {
		return err
	}
	want := rec.LastAccessedAt.Add(time.Second)
	if err := touch(ctx, doomed, sessionstore.Touch{ID: rec.ID, LastAccessedAt: want, TTL: long}); err != nil {
		return err
	}
	kill()
	at, err := lastAccessed(ctx, survivor, rec.ID)
	if err == nil && !at.Equal(want) {
		return kit.Failf("LastAccessedAt must be %s, the time of the Touch; it is %s", want, at)
	}
	return err
}

func survivesDelete(ctx context.Context, doomed sessionstore.Store, kill func(), survivor sessionstore.Store) error {
	rec, err := put(ctx, survivor, long)
	if err != nil {
		return err
	}
	if err := doomed.Delete(ctx, rec.ID); err != nil {
		return kit.Failf("Delete failed: %w", err)
	}
	kill()
	return gone(ctx, survivor, rec.ID, "after a Delete")
}
