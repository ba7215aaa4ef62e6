package sessionstoretest

import (
	"context"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// remnants are promises that a store breaks in which something of an earlier write stays behind.
func remnants() []Check {
	const put, latest = "Put writes a record under its id, whether or not it exists", "with the last_accessed_at of the latest Touch"
	return []Check{
		check("a field that a put leaves empty is empty", put, emptiesFields),
		check("a put has its own time of the last access, whatever was touched before", put, forgetsTouches),
		check("a touch sets times to the millisecond", latest, touchesByMillisecond),
		check("each session of a batch gets its own time", latest, ownTimes),
		check("each session of a batch gets its own lifetime", "starts the lifetime anew for each session of the batch that exists", ownLifetimes),
		check("a text that resembles an id finds, touches and deletes no session", "and for an id that never was", resemblesNothing),
		check("a lifetime of less than a millisecond is one", "to live for ttl from now", tinyLifetimes),
		check("a put that is invalid changes nothing", "INVALID_ARGUMENT for an empty id and for a ttl that is not positive", refusalKeeps),
	}
}

func emptiesFields(ctx context.Context, s sessionstore.Store) error {
	for i := range 3 {
		full := owned(i)
		empty := sessionstore.Record{ID: full.ID, CreatedAt: full.CreatedAt, LastAccessedAt: full.LastAccessedAt}
		for _, rec := range []sessionstore.Record{full, empty} {
			if err := putAs(ctx, s, rec, long); err != nil {
				return err
			}
		}
		if err := same(ctx, s, empty); err != nil {
			return kit.Failf("after a second Put whose fields are empty: %w", err)
		}
	}
	return nil
}

func forgetsTouches(ctx context.Context, s sessionstore.Store) error {
	for _, deleted := range []bool{false, true} {
		rec, err := put(ctx, s, long)
		if err != nil {
			return err
		}
		if err := touch(ctx, s, sessionstore.Touch{ID: rec.ID, LastAccessedAt: rec.LastAccessedAt.Add(time.Minute), TTL: long}); err != nil {
			return err
		}
		if deleted {
			if err := s.Delete(ctx, rec.ID); err != nil {
				return kit.Failf("Delete failed: %w", err)
			}
		}
		if err := putAs(ctx, s, rec, long); err != nil {
			return err
		}
		if err := same(ctx, s, rec); err != nil {
			return kit.Failf("after a Put, a Touch and a second Put with the time of the first one: %w", err)
		}
	}
	return nil
}

func touchesByMillisecond(ctx context.Context, s sessionstore.Store) error {
	rec, err := put(ctx, s, long)
	if err != nil {
		return err
	}
	for _, later := range []time.Duration{2123 * time.Millisecond, 2124 * time.Millisecond, 2999 * time.Millisecond} {
		want := rec.LastAccessedAt.Add(later)
		if err := touch(ctx, s, sessionstore.Touch{ID: rec.ID, LastAccessedAt: want, TTL: long}); err != nil {
			return err
		}
		at, err := lastAccessed(ctx, s, rec.ID)
		if err != nil {
			return err
		}
		if !at.Equal(want) {
			return kit.Failf("LastAccessedAt must be %s, the time of the latest Touch; it is %s", want.Format(time.StampMilli), at.Format(time.StampMilli))
		}
	}
	return nil
}

func ownTimes(ctx context.Context, s sessionstore.Store) error {
	var batch []sessionstore.Touch
	for i := range 12 {
		rec, err := put(ctx, s, long)
		if err != nil {
			return err
		}
		later := time.Duration(1+(i*7)%12) * time.Second // neither ascending nor descending
		batch = append(batch, sessionstore.Touch{ID: rec.ID, LastAccessedAt: rec.LastAccessedAt.Add(later), TTL: long})
	}
	if err := touch(ctx, s, batch...); err != nil {
		return err
	}
	for i, t := range batch {
		at, err := lastAccessed(ctx, s, t.ID)
		if err != nil {
			return err
		}
		if !at.Equal(t.LastAccessedAt) {
			return kit.Failf("entry %d of a batch of %d was touched with %s; its LastAccessedAt is %s", i, len(batch), t.LastAccessedAt, at)
		}
	}
	return nil
}

func ownLifetimes(ctx context.Context, s sessionstore.Store) error {
	var batch []sessionstore.Touch
	for i := range 6 {
		rec, err := put(ctx, s, long)
		if err != nil {
			return err
		}
		ttl := long
		if i%3 == 1 {
			ttl = short
		}
		batch = append(batch, sessionstore.Touch{ID: rec.ID, LastAccessedAt: rec.LastAccessedAt.Add(time.Second), TTL: ttl})
	}
	if err := touch(ctx, s, batch...); err != nil {
		return err
	}
	if err := wait(ctx, short); err != nil {
		return err
	}
	for i, t := range batch {
		if t.TTL == short {
			if err := goneSoon(ctx, s, t.ID, "within a second of the end of the 300 ms that its entry of a batch gave it"); err != nil {
				return err
			}
			continue
		}
		if err := exists(ctx, s, t.ID, "whose entry of a batch gave it 10 min, while another entry gave 300 ms"); err != nil {
			return kit.Failf("entry %d: %w", i, err)
		}
	}
	return nil
}

// resemblances are texts that a pattern, a prefix or a comparison that is not exact takes for id.
func resemblances(id string) []string {
	return []string{
		id[:len(id)-1], id + "x", strings.ToLower(id), " " + id, id + " ", id + "\n", id[:8] + "%", id[:8] + "*", id[:len(id)-1] + "_", id[:len(id)-1] + "?",
		"%", "*", "x' OR '1'='1", id + "'--", "../" + id, id + "/", `"` + id + `"`, id + "\x00", strings.Repeat(id, 50), "",
	}
}

func resemblesNothing(ctx context.Context, s sessionstore.Store) error {
	rec, err := put(ctx, s, long)
	if err != nil {
		return err
	}
	for _, id := range resemblances(rec.ID) {
		if err := gone(ctx, s, id, "for the text "+start(id)+", which resembles an id and is none"); err != nil {
			return err
		}
		if err := touch(ctx, s, sessionstore.Touch{ID: id, LastAccessedAt: rec.LastAccessedAt.Add(time.Minute), TTL: long}); err != nil {
			return kit.Failf("with the text %q: %w", start(id), err)
		}
		if err := s.Delete(ctx, id); err != nil {
			return kit.Failf("Delete of the text %q, which is no session's id, must not fail: %w", start(id), err)
		}
		if err := same(ctx, s, rec); err != nil {
			return kit.Failf("after Touch and Delete of the text %q, which resembles its id: %w", start(id), err)
		}
	}
	return nil
}

func start(s string) string { return s[:min(len(s), 60)] }

func tinyLifetimes(ctx context.Context, s sessionstore.Store) error {
	const tiny = 100 * time.Microsecond
	one := session(newID())
	if err := s.Put(ctx, one, tiny); err != nil {
		return kit.Failf("Put with a ttl of %s, which is positive, must not fail; it returned the error %q", tiny, err)
	}
	other, err := put(ctx, s, long)
	if err != nil {
		return err
	}
	if err := s.Touch(ctx, []sessionstore.Touch{{ID: other.ID, LastAccessedAt: other.LastAccessedAt, TTL: tiny}}); err != nil {
		return kit.Failf("Touch with a ttl of %s, which is positive, must not fail; it returned the error %q", tiny, err)
	}
	for _, id := range []string{one.ID, other.ID} {
		if err := goneSoon(ctx, s, id, "within a second of the end of a lifetime of 100 µs"); err != nil {
			return err
		}
	}
	return nil
}

func refusalKeeps(ctx context.Context, s sessionstore.Store) error {
	rec, err := put(ctx, s, long)
	if err != nil {
		return err
	}
	other := varied(1)
	other.ID = rec.ID
	for _, ttl := range []time.Duration{0, -time.Second} {
		if s.Put(ctx, other, ttl) == nil {
			continue // whether it must fail is another check's question
		}
		if err := same(ctx, s, rec); err != nil {
			return kit.Failf("after a Put with a ttl of %s, which was refused: %w", ttl, err)
		}
	}
	return nil
}
