package sessionstoretest

import (
	"context"
	"time"

	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

func touchSetsTime(ctx context.Context, s sessionstore.Store) error {
	rec, err := put(ctx, s, long)
	if err != nil {
		return err
	}
	want := rec.LastAccessedAt.Add(2 * time.Second)
	if err := touch(ctx, s, sessionstore.Touch{ID: rec.ID, LastAccessedAt: want, TTL: long}); err != nil {
		return err
	}
	at, err := lastAccessed(ctx, s, rec.ID)
	if err == nil && !at.Equal(want) {
		return kit.Failf("LastAccessedAt must be %s, the time it was touched with; it is %s", want, at)
	}
	return err
}

func lastAccessed(ctx context.Context, s sessionstore.Store, id string) (time.Time, error) {
	got, err := s.Get(ctx, id)
	if err != nil {
		return time.Time{}, kit.Failf("Get must find the session after a Touch; it returned the error %q", err)
	}
	return normal(got).LastAccessedAt, nil
}

func touchKeepsRecord(ctx context.Context, s sessionstore.Store) error {
	rec, err := put(ctx, s, long)
	if err != nil {
		return err
	}
	before, err := s.Get(ctx, rec.ID)
	if err != nil {
		return kit.Failf("Get must find the session; it returned the error %q", err)
	}
	if err := touch(ctx, s, sessionstore.Touch{ID: rec.ID, LastAccessedAt: rec.LastAccessedAt.Add(time.Second), TTL: long}); err != nil {
		return err
	}
	after, err := s.Get(ctx, rec.ID)
	if err != nil {
		return kit.Failf("Get must find the session after a Touch; it returned the error %q", err)
	}
	after.LastAccessedAt = before.LastAccessedAt
	if normal(before) != normal(after) {
		return kit.Failf("a Touch must change nothing but LastAccessedAt of\n  %+v\nafter it, Get returned\n  %+v", normal(before), normal(after))
	}
	return nil
}

func touchProlongs(ctx context.Context, s sessionstore.Store) error {
	return prolongs(ctx, s, time.Second)
}

func olderTouchProlongs(ctx context.Context, s sessionstore.Store) error {
	return prolongs(ctx, s, -time.Second)
}

// prolongs touches with a time that differs from the record's, and outlives the first lifetime.
func prolongs(ctx context.Context, s sessionstore.Store, later time.Duration) error {
	rec, err := put(ctx, s, time.Second)
	if err != nil {
		return err
	}
	if err := touch(ctx, s, sessionstore.Touch{ID: rec.ID, LastAccessedAt: rec.LastAccessedAt.Add(later), TTL: long}); err != nil {
		return err
	}
	if err := wait(ctx, 1300*time.Millisecond); err != nil {
		return err
	}
	return exists(ctx, s, rec.ID, "after 1.3 s when it was put for 1 s and at once touched for 10 min")
}

func touchShortens(ctx context.Context, s sessionstore.Store) error {
	rec, err := put(ctx, s, long)
	if err != nil {
		return err
	}
	if err := touch(ctx, s, sessionstore.Touch{ID: rec.ID, LastAccessedAt: rec.LastAccessedAt.Add(time.Second), TTL: short}); err != nil {
		return err
	}
	return goneSoon(ctx, s, rec.ID, "within a second when it was put for 10 min and then touched for 300 ms")
}

func touchIsMonotonic(ctx context.Context, s sessionstore.Store) error {
	rec, err := put(ctx, s, long)
	if err != nil {
		return err
	}
	newest := rec.LastAccessedAt.Add(time.Minute)
	if err := touch(ctx, s, sessionstore.Touch{ID: rec.ID, LastAccessedAt: newest, TTL: long}); err != nil {
		return err
	}
	before, err := lastAccessed(ctx, s, rec.ID)
	if err != nil {
		return err
	}
	for _, older := range []time.Time{newest.Add(-time.Millisecond), rec.LastAccessedAt.Add(-time.Minute)} {
		if err := touch(ctx, s, sessionstore.Touch{ID: rec.ID, LastAccessedAt: older, TTL: long}); err != nil {
			return err
		}
		after, err := lastAccessed(ctx, s, rec.ID)
		if err != nil {
			return err
		}
		if after.Before(before) {
			return kit.Failf("LastAccessedAt must stay %s when a Touch with the older %s comes late; it went back to %s", before, older, after)
		}
	}
	return nil
}

func touchAfterDelete(ctx context.Context, s sessionstore.Store) error {
	rec, err := put(ctx, s, long)
	if err != nil {
		return err
	}
	if err := s.Delete(ctx, rec.ID); err != nil {
		return kit.Failf("Delete failed: %w", err)
	}
	if err := touch(ctx, s, sessionstore.Touch{ID: rec.ID, LastAccessedAt: rec.LastAccessedAt.Add(time.Second), TTL: long}); err != nil {
		return err
	}
	return gone(ctx, s, rec.ID, "after Delete and then Touch")
}

func touchAfterExpiry(ctx context.Context, s sessionstore.Store) error {
	rec, err := put(ctx, s, short)
	if err != nil {
		return err
	}
	if err := goneSoon(ctx, s, rec.ID, "within a second of the end of a lifetime of 300 ms"); err != nil {
		return err
	}
	if err := touch(ctx, s, sessionstore.Touch{ID: rec.ID, LastAccessedAt: rec.LastAccessedAt.Add(time.Second), TTL: long}); err != nil {
		return err
	}
	return gone(ctx, s, rec.ID, "when its lifetime was over before the Touch")
}

func touchNeverWas(ctx context.Context, s sessionstore.Store) error {
	id := newID()
	if err := touch(ctx, s, sessionstore.Touch{ID: id, LastAccessedAt: opened(), TTL: long}); err != nil {
		return err
	}
	return gone(ctx, s, id, "when a Touch was all that was ever done with the id")
}
