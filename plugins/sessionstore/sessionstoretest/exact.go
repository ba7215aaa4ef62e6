package sessionstoretest

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// lengths are lifetimes that wrong units, small integers and caps would change.
func lengths() []time.Duration {
	const day = 24 * time.Hour
	return []time.Duration{
		90 * time.Second, 1500 * time.Millisecond, 59_900 * time.Millisecond, 65_600 * time.Millisecond, time.Hour + time.Second,
		8 * time.Hour, day, day + 7*time.Second, 7*day + 11*time.Second, 24*day + 20*time.Hour, 25 * day, 30 * day,
	}
}

// exactness is how far a lifetime may be from what was asked for, beside the time that calls take.
const exactness = time.Second

func putExact(ctx context.Context, s sessionstore.Store) error {
	return exactly(ctx, s, func(id string, ttl time.Duration) error { return putAs(ctx, s, session(id), ttl) })
}

func touchExact(ctx context.Context, s sessionstore.Store) error {
	return exactly(ctx, s, func(id string, ttl time.Duration) error {
		rec := session(id)
		for i, first := range []time.Duration{time.Minute, 20 * 24 * time.Hour} { // shorter and longer than what follows
			if err := putAs(ctx, s, rec, first); err != nil {
				return err
			}
			at := rec.LastAccessedAt.Add(time.Duration(1-2*i) * time.Second) // newer, then older
			if err := touch(ctx, s, sessionstore.Touch{ID: id, LastAccessedAt: at, TTL: ttl}); err != nil {
				return err
			}
		}
		return nil
	})
}

// exactly compares lifetimes with one of a minute that was begun at the same time, so that the clocks
// of kit and store may differ.
func exactly(ctx context.Context, s sessionstore.Store, begin func(id string, ttl time.Duration) error) error {
	for _, ttl := range lengths() {
		began := time.Now()
		reference, id := newID(), newID()
		if err := putAs(ctx, s, session(reference), time.Minute); err != nil {
			return err
		}
		if err := begin(id, ttl); err != nil {
			return err
		}
		slack := exactness + time.Since(began)
		base, err := expiryOf(ctx, s, reference)
		if err != nil {
			return err
		}
		got, err := expiryOf(ctx, s, id)
		if err != nil {
			return kit.Failf("a session that was begun for %s: %w", ttl, err)
		}
		if off := got.Sub(base) - (ttl - time.Minute); off.Abs() > slack {
			return kit.Failf("a lifetime of %s must end %s after one of a minute that began at the same time; it ends %s after it", ttl, ttl-time.Minute, got.Sub(base))
		}
	}
	return nil
}

// expiryOf is the session's expires_at.
func expiryOf(ctx context.Context, s sessionstore.Store, id string) (time.Time, error) {
	rec, err := s.Get(ctx, id)
	if err != nil {
		return time.Time{}, kit.Failf("Get must find the session; it returned the error %q", err)
	}
	if rec.ExpiresAt.IsZero() {
		return time.Time{}, kit.Skip("Get does not say when a lifetime is over (expires_at)")
	}
	return rec.ExpiresAt, nil
}

// expiryIsTrue holds expires_at against what happens.
func expiryIsTrue(ctx context.Context, s sessionstore.Store) error {
	const ttl = 2 * time.Second
	began := time.Now()
	rec, err := put(ctx, s, ttl)
	if err != nil {
		return err
	}
	first, err := expiryOf(ctx, s, rec.ID)
	if err != nil {
		return err
	}
	if err := wait(ctx, ttl/2); err != nil {
		return err
	}
	second, err := expiryOf(ctx, s, rec.ID)
	if err != nil {
		return err
	}
	if second.Sub(first).Abs() > exactness/2 {
		return kit.Failf("expires_at must not move without a Touch; it was %s and is %s", first, second)
	}
	if err := wait(ctx, ttl-time.Since(began)); err != nil {
		return err
	}
	return goneSoon(ctx, s, rec.ID, "within a second of expires_at")
}

// livesToTheEnd asks until the lifetime is nearly over, of sessions that were put, touched and replaced;
// then until it is over, which asking must not delay.
func livesToTheEnd(ctx context.Context, s sessionstore.Store) error {
	const ttl = 2900 * time.Millisecond // which a store that counts in seconds would cut
	begin := map[string]func(sessionstore.Record) error{
		"Put": func(rec sessionstore.Record) error { return putAs(ctx, s, rec, ttl) },
		"Touch": func(rec sessionstore.Record) error {
			if err := putAs(ctx, s, rec, long); err != nil {
				return err
			}
			return touch(ctx, s, sessionstore.Touch{ID: rec.ID, LastAccessedAt: rec.LastAccessedAt.Add(time.Second), TTL: ttl})
		},
	}
	if store, ok := s.(sessionstore.Replacer); ok {
		begin["Replace"] = func(rec sessionstore.Record) error {
			if err := putAs(ctx, s, rec, long); err != nil {
				return err
			}
			return replace(ctx, store, rec, ttl, "", true)
		}
	}
	methods := slices.Sorted(maps.Keys(begin))
	return together(len(methods), func(i int) error {
		rec := session(newID())
		began := time.Now()
		if err := begin[methods[i]](rec); err != nil {
			return err
		}
		if err := livesFor(ctx, s, rec.ID, began, ttl); err != nil {
			return kit.Failf("a lifetime that %s gave: %w", methods[i], err)
		}
		return nil
	})
}

// livesFor asks for a session whose lifetime began at a time until it is over.
func livesFor(ctx context.Context, s sessionstore.Store, id string, began time.Time, ttl time.Duration) error {
	const margin = 200 * time.Millisecond
	for {
		_, err := s.Get(ctx, id)
		age := time.Since(began)
		if age > ttl-margin {
			break
		}
		if err != nil {
			return kit.Failf("Get must find the session %s into a lifetime of %s; it returned the error %q", age.Round(time.Millisecond), ttl, err)
		}
		if err := wait(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	if err := wait(ctx, ttl-time.Since(began)); err != nil {
		return err
	}
	return goneSoon(ctx, s, id, "within a second of the end of a lifetime that was asked for all the time")
}
