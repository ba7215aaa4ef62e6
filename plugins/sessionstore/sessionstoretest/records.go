package sessionstoretest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

func comesBack(ctx context.Context, s sessionstore.Store) error {
	rec, err := put(ctx, s, long)
	if err != nil {
		return err
	}
	return same(ctx, s, rec)
}

func timesComeBack(ctx context.Context, s sessionstore.Store) error {
	rec := session(newID())
	rec.CreatedAt = time.Date(2026, 2, 28, 23, 59, 59, 999_000_000, time.UTC)
	rec.LastAccessedAt = time.Date(2026, 3, 1, 0, 0, 0, 1_000_000, time.FixedZone("", 3600))
	if err := putAs(ctx, s, rec, long); err != nil {
		return err
	}
	got, err := s.Get(ctx, rec.ID)
	if err != nil {
		return kit.Failf("Get must find the session; it returned the error %q", err)
	}
	got, rec = normal(got), normal(rec)
	if !got.CreatedAt.Equal(rec.CreatedAt) || !got.LastAccessedAt.Equal(rec.LastAccessedAt) {
		return kit.Failf("the times %s and %s must come back; Get returned %s and %s",
			rec.CreatedAt, rec.LastAccessedAt, got.CreatedAt, got.LastAccessedAt)
	}
	return nil
}

// farTimesComeBack puts times that small integers, negative remainders and defaults change.
func farTimesComeBack(ctx context.Context, s sessionstore.Store) error {
	for _, at := range []time.Time{
		{}, time.Unix(0, 0), time.Date(1969, 12, 31, 23, 59, 58, 999e6, time.UTC), time.Date(2040, 2, 29, 12, 0, 0, 1e6, time.UTC), time.Date(2107, 1, 1, 0, 0, 0, 7e6, time.UTC),
	} {
		rec := session(newID())
		rec.CreatedAt, rec.LastAccessedAt = at, at
		if err := putAs(ctx, s, rec, long); err != nil {
			return kit.Failf("with the times %s: %w", at, err)
		}
		if err := same(ctx, s, rec); err != nil {
			return err
		}
		rec.LastAccessedAt = time.Date(2108, 1, 1, 0, 0, 0, 9e6, time.UTC)
		if err := touch(ctx, s, sessionstore.Touch{ID: rec.ID, LastAccessedAt: rec.LastAccessedAt, TTL: long}); err != nil {
			return err
		}
		if err := same(ctx, s, rec); err != nil {
			return kit.Failf("after a Touch of a session whose times were %s: %w", at, err)
		}
	}
	return nil
}

func textComesBack(ctx context.Context, s sessionstore.Store) error {
	for _, text := range []string{
		"", " leading and trailing ", `"quotes" and \backslashes\`, "'; DROP TABLE sessions; --",
		"line\nbreaks\r\nand\ttabs", "a NUL \x00 inside", "Ропы ходят · 綱渡り · 🪢", "<a href=x>&amp;</a>\u2028",
		"{\"json\": [1]}", strings.Repeat("x", 2000),
	} {
		rec := session(newID())
		rec.Subject, rec.ClientInfo.Name, rec.ClientInfo.Version = text, text, text
		if err := putAs(ctx, s, rec, long); err != nil {
			return kit.Failf("with the text %q: %w", text, err)
		}
		got, err := s.Get(ctx, rec.ID)
		if err != nil {
			return kit.Failf("with the text %q: Get must find the session; it returned the error %q", text, err)
		}
		if got.Subject != text || got.ClientInfo != rec.ClientInfo {
			return kit.Failf("the text %q must come back; Get returned the subject %q and the client %q", text, got.Subject, got.ClientInfo)
		}
	}
	return nil
}

func longIDs(ctx context.Context, s sessionstore.Store) error {
	stem := strings.Repeat(newID(), 8)[:127]
	return areDistinct(ctx, s, stem+"a", stem+"b")
}

func similarIDs(ctx context.Context, s sessionstore.Store) error {
	stem := newID()
	return areDistinct(ctx, s, stem+"-id", stem+"-ID", stem+"-i", stem+"-id ", stem+"-*", stem+"-%", stem+"-i_", stem+"-{id}", stem+"/../id", stem+"-íd")
}

// areDistinct puts a session under each id, checks each, deletes them one by one and checks that only
// that one went.
func areDistinct(ctx context.Context, s sessionstore.Store, ids ...string) error {
	recs := make([]sessionstore.Record, len(ids))
	for i, id := range ids {
		recs[i] = session(id)
		recs[i].Subject = fmt.Sprintf("user_%d", i)
		if err := putAs(ctx, s, recs[i], long); err != nil {
			return kit.Failf("with the id %q: %w", id, err)
		}
	}
	for i := range ids {
		for _, rec := range recs[i:] {
			if err := holds(ctx, s, rec); err != nil {
				return kit.Failf("the ids %q must not be mixed up: %w", ids, err)
			}
		}
		if err := s.Delete(ctx, ids[i]); err != nil {
			return kit.Failf("Delete of the id %q failed: %w", ids[i], err)
		}
	}
	return nil
}

func neverWas(ctx context.Context, s sessionstore.Store) error {
	return gone(ctx, s, newID(), "for an id that never was")
}

func replacesRecord(ctx context.Context, s sessionstore.Store) error {
	rec, err := put(ctx, s, long)
	if err != nil {
		return err
	}
	rec.Subject = "user_02"
	if err := putAs(ctx, s, rec, long); err != nil {
		return err
	}
	return holds(ctx, s, rec)
}

func deletedIsGone(ctx context.Context, s sessionstore.Store) error {
	rec, err := put(ctx, s, long)
	if err != nil {
		return err
	}
	if err := s.Delete(ctx, rec.ID); err != nil {
		return kit.Failf("Delete failed: %w", err)
	}
	return gone(ctx, s, rec.ID, "after Delete")
}

func deletesNothing(ctx context.Context, s sessionstore.Store) error {
	if err := s.Delete(ctx, newID()); err != nil {
		return kit.Failf("Delete of an id that never was must not fail; it returned the error %q", err)
	}
	return nil
}

func putAfterDelete(ctx context.Context, s sessionstore.Store) error {
	rec, err := put(ctx, s, long)
	if err != nil {
		return err
	}
	if err := s.Delete(ctx, rec.ID); err != nil {
		return kit.Failf("Delete failed: %w", err)
	}
	if err := putAs(ctx, s, rec, long); err != nil {
		return err
	}
	return holds(ctx, s, rec)
}
