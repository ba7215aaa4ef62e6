package sessionstoretest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// meetings are promises that a store breaks in which two calls of the same moment meet at one session.
func meetings() []Check {
	const seen = "A write that was answered OK is seen by every later read, from this server or another one that shares the backend"
	const never = "a Replace never brings a session back"
	return []Check{
		check("puts of one new id at once are all taken", "Put writes a record under its id, whether or not it exists", putsMeet),
		check("batches of the same sessions in another order may come at once", "Calls come concurrently", batchesMeet),
		check("a get does not undo a put of the same moment", seen, getMeetsPut),
		replaceCheck("a replace does not undo a put of the same moment", seen, replaceMeetsPut),
		replaceCheck("a replace does not bring back a session deleted at the same moment", never, replaceMeetsDelete),
		replaceCheck("a replace without a lifetime does not undo the one of a touch of the same moment", seen, replaceMeetsTouch),
		replaceCheck("a replace that writes nothing leaves the lifetime as it is", "Replace writes a record over the one with its id if that one has the expected owner", refusedReplaceLeaves),
		replaceCheck("a replace with a lifetime of less than a millisecond has it", "With a ttl the lifetime starts anew", tinyReplace),
		{Name: "a lifetime ends whose process was killed", Contract: "NOT_FOUND once the lifetime is over, not before it and at most a second later", Run: killed(endsWithoutProcess)},
	}
}

func putsMeet(ctx context.Context, s sessionstore.Store) error {
	for range 20 {
		rec := session(newID())
		subjects := []string{"user_1", "user_2", "user_3", "user_4"}
		err := together(len(subjects), func(i int) error {
			mine := rec
			mine.Subject = subjects[i]
			return putAs(ctx, s, mine, long)
		})
		if err != nil {
			return kit.Failf("of 4 puts of one new id at once: %w", err)
		}
		if got, err := s.Get(ctx, rec.ID); err != nil || !slices.Contains(subjects, got.Subject) {
			return kit.Failf("after 4 puts of one new id at once Get must return one of their records; it returned the subject %q, %v", got.Subject, err)
		}
	}
	return nil
}

// batchesMeet touches the same sessions in batches at once, half of them backwards.
func batchesMeet(ctx context.Context, s sessionstore.Store) error {
	const sessions, callers, rounds = 30, 8, 4
	var batch []sessionstore.Touch
	for range sessions {
		rec, err := put(ctx, s, long)
		if err != nil {
			return err
		}
		batch = append(batch, sessionstore.Touch{ID: rec.ID, LastAccessedAt: rec.LastAccessedAt.Add(time.Second), TTL: long})
	}
	back := slices.Clone(batch)
	slices.Reverse(back)
	err := together(callers, func(i int) error {
		for range rounds {
			if err := touch(ctx, s, [][]sessionstore.Touch{batch, back}[i%2]...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return kit.Failf("of %d batches at once with the same %d sessions, half of them in the opposite order (lock them in one order): %w", callers, sessions, err)
	}
	return nil
}

// getMeetsPut asks for ids while they are put, some of which had a session before whose lifetime is over.
func getMeetsPut(ctx context.Context, s sessionstore.Store) error {
	var recs []sessionstore.Record
	for i := range 20 {
		rec := session(newID())
		if i%2 == 0 {
			if err := putAs(ctx, s, rec, time.Millisecond); err != nil {
				return err
			}
		}
		recs = append(recs, rec)
	}
	if err := wait(ctx, 10*time.Millisecond); err != nil {
		return err
	}
	for _, rec := range recs {
		err := together(6, func(i int) error {
			if i == 2 {
				return putAs(ctx, s, rec, long)
			}
			if _, err := s.Get(ctx, rec.ID); err != nil && !errors.Is(err, plugins.ErrNotFound) {
				return kit.Failf("Get failed: %w", err)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := holds(ctx, s, rec); err != nil {
			return kit.Failf("after a Put, whatever was asked for at the same moment (a Get must not delete what was put since it looked): %w", err)
		}
	}
	return nil
}

// replaceMeets replaces sessions of one owner while meet does something else with them.
func replaceMeets(ctx context.Context, s sessionstore.Replacer, meet func(rec sessionstore.Record) error, look func(rec sessionstore.Record) error) error {
	for range 20 {
		rec, err := putOwned(ctx, s, "server-1", long)
		if err != nil {
			return err
		}
		err = together(4, func(i int) error {
			if i == 2 {
				return meet(rec)
			}
			mine := rec
			mine.Owner = fmt.Sprintf("server-%d", i+10)
			if _, err := s.Replace(ctx, mine, long, "server-1"); err != nil && !errors.Is(err, plugins.ErrNotFound) {
				return kit.Failf("Replace failed: %w", err)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := look(rec); err != nil {
			return err
		}
	}
	return nil
}

func replaceMeetsPut(ctx context.Context, s sessionstore.Replacer) error {
	other := func(rec sessionstore.Record) sessionstore.Record {
		rec.Owner, rec.Subject = "server-2", "user_02"
		return rec
	}
	return replaceMeets(ctx, s, func(rec sessionstore.Record) error { return putAs(ctx, s, other(rec), long) }, func(rec sessionstore.Record) error {
		if err := same(ctx, s, other(rec)); err != nil {
			return kit.Failf("after a Put of a record with another owner, whatever replaces came at the same moment (compare and write must be one step): %w", err)
		}
		return nil
	})
}

func replaceMeetsDelete(ctx context.Context, s sessionstore.Replacer) error {
	return replaceMeets(ctx, s, func(rec sessionstore.Record) error { return s.Delete(ctx, rec.ID) }, func(rec sessionstore.Record) error {
		return gone(ctx, s, rec.ID, "after Delete, whatever replaces came at the same moment (compare and write must be one step)")
	})
}

// replaceMeetsTouch prolongs a lifetime of a minute while a Replace leaves it as it is: in either order it is then long.
func replaceMeetsTouch(ctx context.Context, s sessionstore.Replacer) error {
	for range 20 {
		rec, err := putOwned(ctx, s, "server-1", time.Minute)
		if err != nil {
			return err
		}
		before, err := expiryOf(ctx, s, rec.ID)
		if err != nil {
			return err
		}
		err = together(4, func(i int) error {
			if i == 2 {
				return touch(ctx, s, sessionstore.Touch{ID: rec.ID, LastAccessedAt: rec.LastAccessedAt.Add(time.Second), TTL: long})
			}
			return replace(ctx, s, rec, 0, "server-1", true)
		})
		if err != nil {
			return err
		}
		after, err := expiryOf(ctx, s, rec.ID)
		if err != nil {
			return err
		}
		if after.Sub(before) < (long-time.Minute)/2 {
			return kit.Failf("a Touch gave a session %s, and a Replace of the same moment left its lifetime as it was; it ends at %s, as it did before the Touch, at %s (a Replace must not write the lifetime that it read)", long, after, before)
		}
	}
	return nil
}

func refusedReplaceLeaves(ctx context.Context, s sessionstore.Replacer) error {
	const ttl = 1500 * time.Millisecond
	brief, err := putOwned(ctx, s, "server-1", ttl)
	if err != nil {
		return err
	}
	lasting, err := putOwned(ctx, s, "server-1", long)
	if err != nil {
		return err
	}
	for rec, with := range map[sessionstore.Record]time.Duration{brief: long, lasting: short} {
		if got, err := s.Replace(ctx, rec, with, "server-2"); err != nil && !errors.Is(err, plugins.ErrNotFound) || got {
			return kit.Failf("Replace of a record whose owner is another one must answer false; it answered %v, %v", got, err)
		}
	}
	if err := wait(ctx, ttl); err != nil {
		return err
	}
	if err := goneSoon(ctx, s, brief.ID, "once its lifetime is over, although a Replace with a longer one came for another owner"); err != nil {
		return err
	}
	return exists(ctx, s, lasting.ID, "whose lifetime a Replace for another owner must not shorten")
}

func tinyReplace(ctx context.Context, s sessionstore.Replacer) error {
	const tiny = 100 * time.Microsecond
	rec, err := putOwned(ctx, s, "server-1", long)
	if err != nil {
		return err
	}
	if err := replace(ctx, s, rec, tiny, "server-1", true); err != nil {
		return err
	}
	return goneSoon(ctx, s, rec.ID, "within a second of the end of a lifetime of 100 µs that a Replace gave it")
}

// endsWithoutProcess kills the process that gave a lifetime before it is over.
func endsWithoutProcess(ctx context.Context, doomed sessionstore.Store, kill func(), survivor sessionstore.Store) error {
	rec, err := put(ctx, doomed, short)
	if err != nil {
		return err
	}
	kill()
	if err := wait(ctx, short); err != nil {
		return err
	}
	return goneSoon(ctx, survivor, rec.ID, "within a second of the end of a lifetime of 300 ms")
}
