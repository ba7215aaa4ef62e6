package sessionstoretest

import (
	"context"
	"errors"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// outages are promises about a backend that goes away.
func outages() []Check {
	const away = "Any method answers UNAVAILABLE when the backend could not be asked"
	return []Check{
		{Name: "a put without its backend is unavailable", Contract: away, Run: during(stopped, putIsUnavailable)},
		{Name: "a get without its backend is unavailable, never not found", Contract: away, Run: during(stopped, getIsUnavailable)},
		{Name: "a touch without its backend is unavailable", Contract: away, Run: during(stopped, touchIsUnavailable)},
		{Name: "a delete without its backend is unavailable", Contract: away, Run: during(stopped, deleteIsUnavailable)},
		{Name: "a replace without its backend is unavailable, never not found", Contract: away, Run: during(stopped, replaceIsUnavailable)},
		{Name: "calls to a backend that does not answer return by their deadline", Contract: "Each carries a deadline and returns soon after it passes", Run: during(stalled, returnByDeadline)},
		{Name: "once the backend is back the store works again", Contract: away, Run: recovers},
		{Name: "calls that were given up use nothing up", Contract: "and the plugin stops working on it", Run: usesNothingUp},
	}
}

// comeback is how long a store may take to find its backend again.
const comeback = 15 * time.Second

func stopped(ctx context.Context, b kit.Backend) error { return b.Stop(ctx) }
func stalled(ctx context.Context, b kit.Backend) error { return b.Stall(ctx) }

// during looks at a store whose backend has just gone, given a session that was there before.
func during(fail func(context.Context, kit.Backend) error, look func(context.Context, sessionstore.Store, sessionstore.Record) error) func(context.Context, Subject) error {
	return func(ctx context.Context, s Subject) (err error) {
		if s.Backend == nil {
			return kit.Skip("nothing was given to take the backend away with")
		}
		rec, err := put(ctx, s.Store, long)
		if err != nil {
			return err
		}
		if err := fail(ctx, s.Backend); err != nil {
			return kit.Failf("take the backend away: %w", err)
		}
		defer func() { err = errors.Join(err, restore(ctx, s, rec.ID)) }()
		return look(ctx, s.Store, rec)
	}
}

// restore brings the backend back for the checks that follow. Whether the store then works is the
// question of one check alone.
func restore(ctx context.Context, s Subject, id string) error {
	if err := s.Backend.Start(context.WithoutCancel(ctx)); err != nil {
		return kit.Failf("bring the backend back: %w", err)
	}
	for until := time.Now().Add(comeback); time.Now().Before(until); {
		if _, err := s.Store.Get(ctx, id); err == nil || errors.Is(err, plugins.ErrNotFound) {
			return nil
		}
		if wait(ctx, 50*time.Millisecond) != nil {
			return nil //nolint:nilerr // the check's own deadline reports that time ran out
		}
	}
	return nil
}

func mustBeUnavailable(err error, what string) error {
	switch {
	case err == nil:
		return kit.Failf("%s must return plugins.ErrUnavailable (UNAVAILABLE) while the backend is away; it returned no error", what)
	case !errors.Is(err, plugins.ErrUnavailable):
		return kit.Failf("%s must return plugins.ErrUnavailable (UNAVAILABLE) while the backend is away; it returned the error %q", what, err)
	}
	return nil
}

func putIsUnavailable(ctx context.Context, s sessionstore.Store, _ sessionstore.Record) error {
	return mustBeUnavailable(s.Put(ctx, session(newID()), long), "Put")
}

func getIsUnavailable(ctx context.Context, s sessionstore.Store, rec sessionstore.Record) error {
	for _, id := range []string{rec.ID, newID()} {
		_, err := s.Get(ctx, id)
		if err := mustBeUnavailable(err, "Get"); err != nil {
			return err
		}
	}
	return nil
}

func touchIsUnavailable(ctx context.Context, s sessionstore.Store, rec sessionstore.Record) error {
	return mustBeUnavailable(s.Touch(ctx, []sessionstore.Touch{{ID: rec.ID, LastAccessedAt: rec.LastAccessedAt.Add(time.Second), TTL: long}}), "Touch")
}

func deleteIsUnavailable(ctx context.Context, s sessionstore.Store, rec sessionstore.Record) error {
	return mustBeUnavailable(s.Delete(ctx, rec.ID), "Delete")
}

func replaceIsUnavailable(ctx context.Context, s sessionstore.Store, rec sessionstore.Record) error {
	store, err := replacer(s)
	if err != nil {
		return err
	}
	_, err = store.Replace(ctx, rec, long, rec.Owner)
	return mustBeUnavailable(err, "Replace")
}

// timedCall is a call of a method.
type timedCall struct {
	name string
	call func(context.Context) error
}

func returnByDeadline(ctx context.Context, s sessionstore.Store, rec sessionstore.Record) error {
	calls := []timedCall{
		{"Put", func(ctx context.Context) error { return s.Put(ctx, session(newID()), long) }},
		{"Get", func(ctx context.Context) error { _, err := s.Get(ctx, rec.ID); return err }},
		{"Touch", func(ctx context.Context) error {
			return s.Touch(ctx, []sessionstore.Touch{{ID: rec.ID, LastAccessedAt: rec.LastAccessedAt, TTL: long}})
		}},
		{"Delete", func(ctx context.Context) error { return s.Delete(ctx, rec.ID) }},
	}
	if store, ok := s.(sessionstore.Replacer); ok {
		calls = append(calls, timedCall{"Replace", func(ctx context.Context) error { _, err := store.Replace(ctx, rec, long, rec.Owner); return err }})
	}
	for _, c := range calls {
		short, cancel := context.WithTimeout(ctx, short)
		began := time.Now()
		err := c.call(short)
		took := time.Since(began)
		cancel()
		if took > 2*time.Second {
			return kit.Failf("%s with a deadline of 300 ms must return soon after it; it took %s", c.name, took.Round(time.Millisecond))
		}
		if err := mustBeUnavailable(err, c.name+" of a backend that does not answer"); err != nil {
			return err
		}
	}
	return nil
}

func recovers(ctx context.Context, s Subject) error {
	if s.Backend == nil {
		return kit.Skip("nothing was given to take the backend away with")
	}
	rec, err := put(ctx, s.Store, long)
	if err != nil {
		return err
	}
	if err := s.Backend.Stop(ctx); err != nil {
		return kit.Failf("take the backend away: %w", err)
	}
	_, _ = s.Store.Get(ctx, rec.ID) // so that the store notices
	if err := s.Backend.Start(ctx); err != nil {
		return kit.Failf("bring the backend back: %w", err)
	}
	for until := time.Now().Add(comeback); ; {
		_, err := s.Store.Get(ctx, rec.ID)
		switch {
		case err == nil:
			return holds(ctx, s.Store, rec)
		case errors.Is(err, plugins.ErrNotFound):
			return kit.Failf("a session that was there before the backend went away is not found when it is back")
		case time.Now().After(until):
			return kit.Failf("%s after the backend came back Get still fails: %w", comeback, err)
		}
		if err := wait(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// usesNothingUp gives up many calls of a backend that does not answer. Once it answers again, the store has
// to work as before: what a call used is free again when the call is over.
func usesNothingUp(ctx context.Context, s Subject) error {
	const calls = 200
	if s.Backend == nil {
		return kit.Skip("nothing was given to take the backend away with")
	}
	rec, err := put(ctx, s.Store, long)
	if err != nil {
		return err
	}
	if err := s.Backend.Stall(ctx); err != nil {
		return kit.Failf("have the backend not answer: %w", err)
	}
	_ = together(calls, func(int) error {
		short, cancel := context.WithTimeout(ctx, short)
		defer cancel()
		_, err := s.Store.Get(short, rec.ID)
		return err
	})
	if err := restore(ctx, s, rec.ID); err != nil {
		return err
	}
	err = together(calls/10, func(int) error {
		again, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		return holds(again, s.Store, rec)
	})
	if err != nil {
		return kit.Failf("after %d calls that were given up while the backend did not answer, which it does again: %w", calls, err)
	}
	return nil
}
