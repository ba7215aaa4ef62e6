package sessionstoretest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// undoing are promises that a store breaks in which a write that was acknowledged is lost to another one,
// or to the end of a process.
func undoing() []Check {
	const seen = "A write that was answered OK is seen by every later read, from this server or another one that shares the backend"
	const survives = "survives the end of the process if the plugin has the capability \"durable\""
	return []Check{
		check("a touch does not undo a put of the same moment", seen, func(ctx context.Context, s sessionstore.Store) error { return touchRacesPut(ctx, s, s) }),
		replaceCheck("a touch does not undo a replace of the same moment", seen, touchRacesReplace),
		{Name: "a touch of one process does not undo a put of another", Contract: seen, Run: between(touchRacesPut)},
		{Name: "another process sees a lifetime that a touch changed", Contract: seen, Run: between(sharesLifetime)},
		{Name: "another process sees a replace at once", Contract: seen, Run: betweenReplacers(sharesReplace)},
		{Name: "a replace that was acknowledged survives kill -9", Contract: survives, Run: survivesReplace},
		{Name: "what a killed process wrote can be written by another one", Contract: seen, Run: killed(leavesNoLock)},
		{Name: "a session survives the end of its process in good order", Contract: survives, Run: survivesClose},
	}
}

// touchRacesPut touches a session through one store while the other one puts another record under its id.
func touchRacesPut(ctx context.Context, one, other sessionstore.Store) error {
	for n := range 20 {
		rec, err := put(ctx, one, long)
		if err != nil {
			return err
		}
		second := rec
		second.Subject = fmt.Sprintf("user_%d", n)
		err = together(6, func(i int) error {
			if i == 2 {
				return putAs(ctx, other, second, long)
			}
			return touch(ctx, one, sessionstore.Touch{ID: rec.ID, LastAccessedAt: rec.LastAccessedAt.Add(time.Duration(i) * time.Second), TTL: long})
		})
		if err != nil {
			return err
		}
		if err := holds(ctx, one, second); err != nil {
			return kit.Failf("after a Put, whatever touches came at the same moment (a Touch must not write the record that it read): %w", err)
		}
	}
	return nil
}

func touchRacesReplace(ctx context.Context, s sessionstore.Replacer) error {
	for n := range 20 {
		rec, err := putOwned(ctx, s, "server-1", long)
		if err != nil {
			return err
		}
		second := rec
		second.Owner = fmt.Sprintf("server-%d", n+2)
		err = together(6, func(i int) error {
			if i == 2 {
				return replace(ctx, s, second, long, "server-1", true)
			}
			return touch(ctx, s, sessionstore.Touch{ID: rec.ID, LastAccessedAt: rec.LastAccessedAt.Add(time.Duration(i) * time.Second), TTL: long})
		})
		if err != nil {
			return err
		}
		if got, err := s.Get(ctx, rec.ID); err != nil || got.Owner != second.Owner {
			return kit.Failf("after a Replace, whatever touches came at the same moment, the owner must be %q; Get returned %q, %v (a Touch must not write the record that it read)", second.Owner, got.Owner, err)
		}
	}
	return nil
}

// sharesLifetime changes lifetimes through one store that the other one has seen.
func sharesLifetime(ctx context.Context, one, other sessionstore.Store) error {
	prolonged, err := put(ctx, one, slack)
	if err != nil {
		return err
	}
	shortened, err := put(ctx, one, long)
	if err != nil {
		return err
	}
	for _, rec := range []sessionstore.Record{prolonged, shortened} {
		_, _ = other.Get(ctx, rec.ID) // what a cache would remember
	}
	at := prolonged.LastAccessedAt.Add(time.Second)
	if err := touch(ctx, one, sessionstore.Touch{ID: prolonged.ID, LastAccessedAt: at, TTL: long}, sessionstore.Touch{ID: shortened.ID, LastAccessedAt: at, TTL: short}); err != nil {
		return err
	}
	if _, err := other.Get(ctx, prolonged.ID); err != nil {
		return kit.Failf("Get must find a session that a Touch of the other process has just prolonged; it returned the error %q", err)
	}
	if err := wait(ctx, slack+short); err != nil {
		return err
	}
	if err := goneSoon(ctx, other, shortened.ID, "once the lifetime is over that a Touch of the other process gave it"); err != nil {
		return err
	}
	return exists(ctx, other, prolonged.ID, "which a Touch of the other process prolonged")
}

// betweenReplacers is between, for stores that have the capability "replace".
func betweenReplacers(look func(ctx context.Context, one, other sessionstore.Replacer) error) func(context.Context, Subject) error {
	return between(func(ctx context.Context, one, other sessionstore.Store) error {
		first, err := replacer(one)
		if err != nil {
			return err
		}
		second, err := replacer(other)
		if err != nil {
			return err
		}
		return look(ctx, first, second)
	})
}

func sharesReplace(ctx context.Context, one, other sessionstore.Replacer) error {
	rec, err := putOwned(ctx, one, "server-1", long)
	if err != nil {
		return err
	}
	if err := same(ctx, other, rec); err != nil {
		return err
	}
	mine := rec
	mine.Owner, mine.State, mine.Subject = "server-2", "taken over", "user_02"
	if err := replace(ctx, one, mine, long, "server-1", true); err != nil {
		return err
	}
	if err := same(ctx, other, mine); err != nil {
		return err
	}
	return replace(ctx, other, rec, long, "server-1", false) // which is no longer the owner
}

func survivesReplace(ctx context.Context, s Subject) error {
	if _, err := replacer(s.Store); err != nil {
		return err
	}
	return killed(func(ctx context.Context, doomed sessionstore.Store, kill func(), survivor sessionstore.Store) error {
		store, err := replacer(doomed)
		if err != nil {
			return err
		}
		rec, err := putOwned(ctx, survivor, "server-1", long)
		if err != nil {
			return err
		}
		rec.Owner, rec.State = "server-2", "taken over"
		if err := replace(ctx, store, rec, long, "server-1", true); err != nil {
			return err
		}
		kill()
		return same(ctx, survivor, rec)
	})(ctx, s)
}

func leavesNoLock(ctx context.Context, doomed sessionstore.Store, kill func(), survivor sessionstore.Store) error {
	rec, err := put(ctx, doomed, long)
	if err != nil {
		return err
	}
	kill()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := touch(ctx, survivor, sessionstore.Touch{ID: rec.ID, LastAccessedAt: rec.LastAccessedAt.Add(time.Second), TTL: long}); err != nil {
		return err
	}
	rec.Subject = "user_02"
	if err := putAs(ctx, survivor, rec, long); err != nil {
		return err
	}
	if err := holds(ctx, survivor, rec); err != nil {
		return err
	}
	if err := survivor.Delete(ctx, rec.ID); err != nil {
		return kit.Failf("Delete failed: %w", err)
	}
	return gone(ctx, survivor, rec.ID, "after Delete")
}

func survivesClose(ctx context.Context, s Subject) error {
	p, err := s.open(ctx)
	if err != nil {
		return err
	}
	rec, err := put(ctx, p.Store, long)
	p.Close()
	if err != nil {
		return err
	}
	if err := holds(ctx, s.Store, rec); err != nil {
		return kit.Failf("after the process that had put it was ended in good order: %w", err)
	}
	return nil
}

// ownersApart are owners of whom neither is the other.
func ownersApart() [][2]string {
	stem := strings.Repeat("server-", 60)
	return [][2]string{{"", "server-1"}, {"server-1", ""}, {stem + "1", stem + "2"}, {"serv\u00e9r", "serve\u0301r"}, {"server\x00one", "server"}, {"0", "00"}, {"null", ""}, {"1", "1.0"}, {"server", "server\n"}}
}

func ownersAreExact(ctx context.Context, s sessionstore.Replacer) error {
	for _, pair := range ownersApart() {
		rec, err := putOwned(ctx, s, pair[0], long)
		if err != nil {
			return err
		}
		other := rec
		other.Owner, other.State = "server-9", "other"
		if err := replace(ctx, s, other, long, pair[1], false); err != nil {
			return kit.Failf("of a record whose owner is %q: %w", start(pair[0]), err)
		}
		if err := same(ctx, s, rec); err != nil {
			return err
		}
		if err := replace(ctx, s, other, long, pair[0], true); err != nil {
			return err
		}
	}
	return nil
}

func replaceTakesAll(ctx context.Context, s sessionstore.Replacer) error {
	for _, state := range []string{strings.Repeat("64 KiB. ", 8<<10), strings.Repeat("綱", 64<<10/3), ""} {
		rec, err := putOwned(ctx, s, "server-1", long)
		if err != nil {
			return err
		}
		rec.State = state
		if err := replace(ctx, s, rec, 0, "server-1", true); err != nil {
			return err
		}
		if err := same(ctx, s, rec); err != nil {
			return kit.Failf("with a state of %d bytes: %w", len(state), err)
		}
		empty := sessionstore.Record{ID: rec.ID, CreatedAt: rec.CreatedAt, LastAccessedAt: rec.LastAccessedAt.Add(-time.Minute)}
		if err := replace(ctx, s, empty, long, "server-1", true); err != nil {
			return err
		}
		if err := same(ctx, s, empty); err != nil {
			return kit.Failf("after a Replace whose fields are empty: %w", err)
		}
	}
	return nil
}

func replaceExact(ctx context.Context, s sessionstore.Replacer) error {
	return exactly(ctx, s, func(id string, ttl time.Duration) error {
		rec := session(id)
		if err := putAs(ctx, s, rec, time.Hour); err != nil {
			return err
		}
		if err := replace(ctx, s, rec, ttl, "", true); err != nil {
			return err
		}
		return replace(ctx, s, rec, 0, "", true) // which leaves it as it is
	})
}
