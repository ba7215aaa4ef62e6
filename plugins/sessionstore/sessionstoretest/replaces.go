package sessionstoretest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// replaces are promises of a store that has the capability "replace".
func replaces() []Check {
	const (
		expected = "Replace writes a record over the one with its id if that one has the expected owner"
		once     = "of several calls that expect the same owner, from this process or another one, one alone writes"
		lifetime = "With a ttl the lifetime starts anew, without one it stays as it is"
		never    = "a Replace never brings a session back"
	)
	return []Check{
		replaceCheck("owner and state come back", "keeps the fields owner and state of a record", ownerComesBack),
		replaceCheck("a replace writes every field when the owner is the expected one", expected, replaceWrites),
		replaceCheck("a replace writes nothing when the owner is another one", expected, replaceKeepsOther),
		replaceCheck("a replace does not make a session that never was", "NOT_FOUND where Get would answer it", replaceNeverWas),
		replaceCheck("a replace does not bring a deleted session back", never, replaceAfterDelete),
		replaceCheck("a replace does not bring an expired session back", never, replaceAfterExpiry),
		replaceCheck("a replace with a lifetime starts it anew", lifetime, replaceRestarts),
		replaceCheck("a replace without a lifetime leaves it as it is", lifetime, replaceLeaves),
		replaceCheck("a touch keeps owner and state", "keeps the fields owner and state of a record", touchKeepsOwner),
		replaceCheck("owners are compared byte for byte, however long they are", expected, ownersAreExact),
		replaceCheck("a replace writes states of 64 KiB and empties fields", expected, replaceTakesAll),
		replaceCheck("lifetimes after a replace are exact from a second to 30 days", "Lifetimes of up to 30 days are exact to the second", replaceExact),
		replaceCheck("a replace that is not valid is invalid", "INVALID_ARGUMENT for an empty id and for a negative ttl", replaceRefuses),
		replaceCheck("of replaces at the same moment one alone writes", once, replacesRace),
		{Name: "of replaces of two processes at the same moment one alone writes", Contract: once, Run: replacesRaceApart},
	}
}

// replaceCheck is a promise that only a store with the capability is held to.
func replaceCheck(name, contract string, run func(context.Context, sessionstore.Replacer) error) Check {
	return Check{Name: name, Contract: contract, Run: func(ctx context.Context, s Subject) error {
		store, err := replacer(s.Store)
		if err != nil {
			return err
		}
		return run(ctx, store)
	}}
}

func replacer(s sessionstore.Store) (sessionstore.Replacer, error) {
	store, ok := s.(sessionstore.Replacer)
	if !ok {
		return nil, kit.Skip(`the store has not the capability "replace"`)
	}
	return store, nil
}

// owned is a record with an owner and a state of the i-th kind of characters.
func owned(i int) sessionstore.Record {
	rec, kind := varied(i), kinds()[i%len(kinds())]
	rec.Owner = fmt.Sprintf("%s owner %d %s", kind, i, strings.Repeat(kind, 3))
	rec.State = fmt.Sprintf("%s state %d %s", kind, i, strings.Repeat(kind, 100))
	return rec
}

func putOwned(ctx context.Context, s sessionstore.Store, owner string, ttl time.Duration) (sessionstore.Record, error) {
	rec := session(newID())
	rec.Owner = owner
	return rec, putAs(ctx, s, rec, ttl)
}

// replace replaces a record, which must have the outcome that is wanted.
func replace(ctx context.Context, s sessionstore.Replacer, rec sessionstore.Record, ttl time.Duration, owner string, want bool) error {
	got, err := s.Replace(ctx, rec, ttl, owner)
	if err != nil {
		return kit.Failf("Replace failed: %w", err)
	}
	if got != want {
		return kit.Failf("Replace of a record must answer %v when the expected owner is %q; it answered %v", want, owner, got)
	}
	return nil
}

func ownerComesBack(ctx context.Context, s sessionstore.Replacer) error {
	for i := range kinds() {
		rec := owned(i)
		if i == 0 {
			rec.State = strings.Repeat("64 KiB. ", 8<<10)
		}
		if err := putAs(ctx, s, rec, long); err != nil {
			return err
		}
		if err := same(ctx, s, rec); err != nil {
			return err
		}
	}
	return nil
}

func replaceWrites(ctx context.Context, s sessionstore.Replacer) error {
	for i := range kinds() {
		first, second := owned(i), owned(i+7)
		if i%4 == 0 {
			first.Owner = "" // no server has it
		}
		second.ID = first.ID
		if err := putAs(ctx, s, first, long); err != nil {
			return err
		}
		if err := replace(ctx, s, second, long, first.Owner, true); err != nil {
			return err
		}
		if err := same(ctx, s, second); err != nil {
			return err
		}
	}
	return nil
}

func replaceKeepsOther(ctx context.Context, s sessionstore.Replacer) error {
	rec, err := putOwned(ctx, s, "server-1", long)
	if err != nil {
		return err
	}
	other := rec
	other.Owner, other.State, other.Subject = "server-2", "other", "user_02"
	for _, owner := range []string{"", "server-2", "server-10", "server-", "SERVER-1", "server-1 "} {
		if err := replace(ctx, s, other, long, owner, false); err != nil {
			return err
		}
		if err := same(ctx, s, rec); err != nil {
			return err
		}
	}
	return nil
}

// replaceMisses replaces a session that is not there.
func replaceMisses(ctx context.Context, s sessionstore.Replacer, rec sessionstore.Record, when string) error {
	for _, owner := range []string{rec.Owner, ""} {
		for _, ttl := range []time.Duration{0, long} {
			if _, err := s.Replace(ctx, rec, ttl, owner); !errors.Is(err, plugins.ErrNotFound) {
				return kit.Failf("Replace must return plugins.ErrNotFound (NOT_FOUND) %s; it returned %v", when, err)
			}
		}
	}
	return gone(ctx, s, rec.ID, when+" and a Replace")
}

func replaceNeverWas(ctx context.Context, s sessionstore.Replacer) error {
	return replaceMisses(ctx, s, session(newID()), "for an id that never was")
}

func replaceAfterDelete(ctx context.Context, s sessionstore.Replacer) error {
	rec, err := putOwned(ctx, s, "server-1", long)
	if err != nil {
		return err
	}
	if err := s.Delete(ctx, rec.ID); err != nil {
		return kit.Failf("Delete failed: %w", err)
	}
	return replaceMisses(ctx, s, rec, "after Delete")
}

func replaceAfterExpiry(ctx context.Context, s sessionstore.Replacer) error {
	rec, err := putOwned(ctx, s, "server-1", short)
	if err != nil {
		return err
	}
	if err := wait(ctx, short); err != nil {
		return err
	}
	if err := goneSoon(ctx, s, rec.ID, "once its lifetime is over"); err != nil {
		return err
	}
	return replaceMisses(ctx, s, rec, "once its lifetime is over")
}

func replaceRestarts(ctx context.Context, s sessionstore.Replacer) error {
	rec, err := putOwned(ctx, s, "server-1", short)
	if err != nil {
		return err
	}
	if err := replace(ctx, s, rec, long, "server-1", true); err != nil {
		return err
	}
	if err := wait(ctx, short+slack); err != nil {
		return err
	}
	if err := exists(ctx, s, rec.ID, "after a Replace with a longer lifetime"); err != nil {
		return err
	}
	if err := replace(ctx, s, rec, short, "server-1", true); err != nil {
		return err
	}
	if err := wait(ctx, short); err != nil {
		return err
	}
	return goneSoon(ctx, s, rec.ID, "once the lifetime that a Replace gave it is over")
}

func replaceLeaves(ctx context.Context, s sessionstore.Replacer) error {
	lasting, err := putOwned(ctx, s, "server-1", long)
	if err != nil {
		return err
	}
	brief, err := putOwned(ctx, s, "server-1", slack)
	if err != nil {
		return err
	}
	for _, rec := range []sessionstore.Record{lasting, brief} {
		if err := replace(ctx, s, rec, 0, "server-1", true); err != nil {
			return err
		}
	}
	if err := wait(ctx, slack); err != nil {
		return err
	}
	if err := goneSoon(ctx, s, brief.ID, "once its lifetime is over, which a Replace left as it was"); err != nil {
		return err
	}
	return exists(ctx, s, lasting.ID, "after a Replace that left its lifetime as it was")
}

func touchKeepsOwner(ctx context.Context, s sessionstore.Replacer) error {
	rec := owned(3)
	if err := putAs(ctx, s, rec, long); err != nil {
		return err
	}
	rec.LastAccessedAt = rec.LastAccessedAt.Add(time.Minute)
	if err := touch(ctx, s, sessionstore.Touch{ID: rec.ID, LastAccessedAt: rec.LastAccessedAt, TTL: long}); err != nil {
		return err
	}
	return same(ctx, s, rec)
}

func replaceRefuses(ctx context.Context, s sessionstore.Replacer) error {
	rec, err := putOwned(ctx, s, "server-1", long)
	if err != nil {
		return err
	}
	for _, ttl := range []time.Duration{-time.Second, -100 * time.Microsecond} {
		if _, err := s.Replace(ctx, rec, ttl, "server-1"); !errors.Is(err, plugins.ErrInvalid) {
			return kit.Failf("Replace with a ttl of %s must return plugins.ErrInvalid (INVALID_ARGUMENT); it returned %v", ttl, err)
		}
	}
	if _, err := s.Replace(ctx, sessionstore.Record{}, long, ""); !errors.Is(err, plugins.ErrInvalid) {
		return kit.Failf("Replace without an id must return plugins.ErrInvalid (INVALID_ARGUMENT); it returned %v", err)
	}
	return same(ctx, s, rec)
}

func replacesRace(ctx context.Context, s sessionstore.Replacer) error {
	return raceOn(ctx, s, s)
}

func replacesRaceApart(ctx context.Context, s Subject) error {
	one, err := replacer(s.Store)
	if err != nil {
		return err
	}
	p, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer p.Close()
	other, err := replacer(p.Store)
	if err != nil {
		return err
	}
	if err := raceOn(ctx, one, other); err != nil {
		return kit.Failf("between two processes on one backend: %w", err)
	}
	return nil
}

// raceOn has eight servers replace one record at once, half of them through each store.
func raceOn(ctx context.Context, one, other sessionstore.Replacer) error {
	for range 20 {
		rec, err := putOwned(ctx, one, "server-0", long)
		if err != nil {
			return err
		}
		var winners atomic.Int32
		var winner atomic.Value
		err = together(8, func(i int) error {
			mine, s := rec, one
			if i%2 == 1 {
				s = other
			}
			mine.Owner = fmt.Sprint("server-", i+1)
			won, err := s.Replace(ctx, mine, long, rec.Owner)
			if won {
				winners.Add(1)
				winner.Store(mine.Owner)
			}
			return err
		})
		if err != nil {
			return kit.Failf("Replace failed: %w", err)
		}
		if n := winners.Load(); n != 1 {
			return kit.Failf("of 8 calls of Replace at once that expected the same owner 1 must write; %d did (compare and write must be one step)", n)
		}
		got, err := one.Get(ctx, rec.ID)
		if err != nil || got.Owner != winner.Load() {
			return kit.Failf("after 8 calls of Replace at once the owner must be %q, whose call wrote; Get returned %q, %v", winner.Load(), got.Owner, err)
		}
	}
	return nil
}
