package sessionstoretest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

func touchPassesOver(ctx context.Context, s sessionstore.Store) error {
	var batch []sessionstore.Touch
	for range 4 {
		rec, err := put(ctx, s, brief)
		if err != nil {
			return err
		}
		for _, id := range []string{newID(), rec.ID} {
			batch = append(batch, sessionstore.Touch{ID: id, LastAccessedAt: rec.LastAccessedAt.Add(time.Second), TTL: long})
		}
	}
	if err := touch(ctx, s, batch...); err != nil {
		return kit.Failf("every second session of the batch does not exist, which is not an error: %w", err)
	}
	if err := reached(ctx, s, batch[1], batch[3], batch[5], batch[7]); err != nil {
		return kit.Failf("in a batch whose every second session does not exist: %w", err)
	}
	return nil
}

func touchThousand(ctx context.Context, s sessionstore.Store) error {
	batch := make([]sessionstore.Touch, 1000)
	err := together(8, func(part int) error {
		for i := part; i < len(batch); i += 8 {
			rec, err := put(ctx, s, long)
			if err != nil {
				return err
			}
			batch[i] = sessionstore.Touch{ID: rec.ID, LastAccessedAt: rec.LastAccessedAt.Add(time.Second), TTL: long}
		}
		return nil
	})
	if err != nil {
		return err
	}
	var samples []sessionstore.Touch
	for _, i := range []int{0, 127, 512, 999} { // again, for a lifetime that only the batch can prolong
		rec := session(batch[i].ID)
		if err := putAs(ctx, s, rec, brief); err != nil {
			return err
		}
		batch[i].LastAccessedAt = rec.LastAccessedAt.Add(time.Second)
		samples = append(samples, batch[i])
	}
	if err := touch(ctx, s, batch...); err != nil {
		return kit.Failf("a batch of 1,000 sessions: %w", err)
	}
	if err := reached(ctx, s, samples...); err != nil {
		return kit.Failf("of the entries 0, 127, 512 and 999 of a batch of 1,000: %w", err)
	}
	return nil
}

// brief is a lifetime that a session outlives by being touched.
const brief = 10 * time.Second

// reached checks that touches had any effect on sessions that were put for a brief lifetime: either
// the time is new, or the sessions outlive it. Which of the two is missing is for other checks.
func reached(ctx context.Context, s sessionstore.Store, touches ...sessionstore.Touch) error {
	var waited bool
	for _, t := range touches {
		at, err := lastAccessed(ctx, s, t.ID)
		if err == nil && at.Equal(t.LastAccessedAt) {
			continue
		}
		if !waited {
			if err := wait(ctx, brief+short); err != nil {
				return err
			}
			waited = true
		}
		if _, err := s.Get(ctx, t.ID); err != nil {
			return kit.Failf("the Touch must reach every session that exists; one kept its LastAccessedAt and its lifetime (Get: %q)", err)
		}
	}
	return nil
}

func touchTwice(ctx context.Context, s sessionstore.Store) error {
	rec, err := put(ctx, s, long)
	if err != nil {
		return err
	}
	older := sessionstore.Touch{ID: rec.ID, LastAccessedAt: rec.LastAccessedAt.Add(time.Second), TTL: long}
	newer := sessionstore.Touch{ID: rec.ID, LastAccessedAt: rec.LastAccessedAt.Add(2 * time.Second), TTL: long}
	if err := touch(ctx, s, older, newer, older); err != nil {
		return kit.Failf("a batch that holds one session three times: %w", err)
	}
	at, err := lastAccessed(ctx, s, rec.ID)
	if err == nil && at.Equal(older.LastAccessedAt) {
		return kit.Failf("a batch holds one session three times; the newest time %s must win, and %s did", newer.LastAccessedAt, at)
	}
	return err
}

func touchNothing(ctx context.Context, s sessionstore.Store) error {
	if err := s.Touch(ctx, nil); err != nil {
		return kit.Failf("Touch of an empty batch must not fail; it returned the error %q", err)
	}
	return nil
}

func refusesEmptyID(ctx context.Context, s sessionstore.Store) error {
	return invalid(s.Put(ctx, session(""), long), "Put of a record without an id")
}

func refusesLifetime(ctx context.Context, s sessionstore.Store) error {
	for _, ttl := range []time.Duration{0, -time.Second, -100 * time.Microsecond} {
		if err := invalid(s.Put(ctx, session(newID()), ttl), fmt.Sprintf("Put with a ttl of %s", ttl)); err != nil {
			return err
		}
	}
	return nil
}

func refusesTouch(ctx context.Context, s sessionstore.Store) error {
	rec, err := put(ctx, s, long)
	if err != nil {
		return err
	}
	for _, ttl := range []time.Duration{0, -time.Second, -100 * time.Microsecond} {
		good := sessionstore.Touch{ID: rec.ID, LastAccessedAt: rec.LastAccessedAt.Add(time.Second), TTL: long}
		bad := sessionstore.Touch{ID: rec.ID, LastAccessedAt: good.LastAccessedAt, TTL: ttl}
		if err := invalid(s.Touch(ctx, []sessionstore.Touch{good, bad}), fmt.Sprintf("Touch with a ttl of %s", ttl)); err != nil {
			return err
		}
	}
	at, err := lastAccessed(ctx, s, rec.ID)
	if err == nil && !at.Equal(rec.LastAccessedAt) {
		return kit.Failf("a batch that was refused must change nothing; LastAccessedAt was %s and is %s", rec.LastAccessedAt, at)
	}
	return err
}

// recoversFromRefusal has a batch refused for one session in its middle, and touches all of them again.
func recoversFromRefusal(ctx context.Context, s sessionstore.Store) error {
	var batch []sessionstore.Touch
	for range 5 {
		rec, err := put(ctx, s, long)
		if err != nil {
			return err
		}
		batch = append(batch, sessionstore.Touch{ID: rec.ID, LastAccessedAt: rec.LastAccessedAt.Add(time.Second), TTL: long})
	}
	batch[2].TTL = -time.Second
	if err := invalid(s.Touch(ctx, batch), "Touch of five sessions, one of them with a negative ttl,"); err != nil {
		return err
	}
	for i, t := range batch {
		at, err := lastAccessed(ctx, s, t.ID)
		if err != nil {
			return kit.Failf("the entry %d of a batch of five that was refused: %w", i, err)
		}
		if before := t.LastAccessedAt.Add(-time.Second); !at.Equal(before) {
			return kit.Failf("a batch that was refused for its entry 2 must change nothing; the entry %d was last accessed at %s and is now at %s", i, before, at)
		}
	}
	batch[2].TTL = long
	if err := touch(ctx, s, batch...); err != nil {
		return kit.Failf("once the batch that was refused is good: %w", err)
	}
	for i, t := range batch {
		at, err := lastAccessed(ctx, s, t.ID)
		if err != nil {
			return err
		}
		if !at.Equal(t.LastAccessedAt) {
			return kit.Failf("after a batch was refused a good one must touch its sessions; the entry %d is at %s, not at %s", i, at, t.LastAccessedAt)
		}
	}
	return nil
}

func invalid(err error, what string) error {
	switch {
	case err == nil:
		return kit.Failf("%s must return plugins.ErrInvalid (INVALID_ARGUMENT); it returned no error", what)
	case !errors.Is(err, plugins.ErrInvalid):
		return kit.Failf("%s must return plugins.ErrInvalid (INVALID_ARGUMENT); it returned the error %q", what, err)
	}
	return nil
}

func returnsInTime(ctx context.Context, s sessionstore.Store) error {
	late, cancel := context.WithDeadline(ctx, time.Now().Add(-time.Second))
	defer cancel()
	rec := session(newID())
	calls := map[string]func(){
		"Put":    func() { _ = s.Put(late, rec, long) },
		"Get":    func() { _, _ = s.Get(late, rec.ID) },
		"Touch":  func() { _ = s.Touch(late, []sessionstore.Touch{{ID: rec.ID, LastAccessedAt: opened(), TTL: long}}) },
		"Delete": func() { _ = s.Delete(late, rec.ID) },
	}
	if store, ok := s.(sessionstore.Replacer); ok {
		calls["Replace"] = func() { _, _ = store.Replace(late, rec, long, "") }
	}
	for name, call := range calls {
		returned := make(chan struct{})
		go func() {
			defer close(returned)
			call()
		}()
		timer := time.NewTimer(5 * slack)
		select {
		case <-returned:
			timer.Stop()
		case <-timer.C:
			return kit.Failf("%s must return soon after its deadline; 5 s later it had not", name)
		}
	}
	return nil
}
