package sessionstoretest

import (
	"context"
	"time"

	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

func livesLongEnough(ctx context.Context, s sessionstore.Store) error {
	rec, err := put(ctx, s, 3*time.Second)
	if err != nil {
		return err
	}
	if err := wait(ctx, 1500*time.Millisecond); err != nil {
		return err
	}
	return exists(ctx, s, rec.ID, "1.5 s into a lifetime of 3 s")
}

func expires(ctx context.Context, s sessionstore.Store) error {
	rec, err := put(ctx, s, short)
	if err != nil {
		return err
	}
	if err := wait(ctx, short); err != nil {
		return err
	}
	return goneSoon(ctx, s, rec.ID, "within a second of the end of a lifetime of 300 ms")
}

// endedLifetimes outlives lifetimes that were over before their time.
func endedLifetimes(ctx context.Context, s sessionstore.Store) error {
	again, deleted := session(newID()), session(newID())
	for _, rec := range []sessionstore.Record{again, deleted} {
		if err := putAs(ctx, s, rec, short); err != nil {
			return err
		}
	}
	if err := s.Delete(ctx, deleted.ID); err != nil {
		return kit.Failf("Delete failed: %w", err)
	}
	for _, rec := range []sessionstore.Record{again, deleted} {
		if err := putAs(ctx, s, rec, long); err != nil {
			return err
		}
	}
	if err := wait(ctx, short+slack); err != nil {
		return err
	}
	if err := exists(ctx, s, again.ID, "that was put for 300 ms and then again for 10 min"); err != nil {
		return err
	}
	return exists(ctx, s, deleted.ID, "that was put for 300 ms, deleted, and put again for 10 min")
}

func replacesLifetime(ctx context.Context, s sessionstore.Store) error {
	rec, err := put(ctx, s, long)
	if err != nil {
		return err
	}
	if err := putAs(ctx, s, rec, short); err != nil {
		return err
	}
	return goneSoon(ctx, s, rec.ID, "within a second when it was put for 10 min and then again for 300 ms")
}
