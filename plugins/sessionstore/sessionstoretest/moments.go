package sessionstoretest

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// touchRacesExpiry touches sessions once, just before or after the end of their lifetimes: what was
// not found once must not be found again.
func touchRacesExpiry(ctx context.Context, s sessionstore.Store) error {
	const sessions, look, pause = 16, 40, 5 * time.Millisecond
	return together(sessions, func(i int) error {
		rec, err := put(ctx, s, short)
		if err != nil {
			return err
		}
		offset := time.Duration(i-sessions/2) * pause
		touched := time.Now().Add(short + offset)
		if err := wait(ctx, short-sessions/2*pause); err != nil {
			return err
		}
		for lost, n := false, 0; n < look; n++ {
			switch _, err := s.Get(ctx, rec.ID); {
			case errors.Is(err, plugins.ErrNotFound):
				lost = true
			case err != nil:
				return kit.Failf("Get failed: %w", err)
			case lost:
				return kit.Failf("a session was not found once its lifetime was over, then a Touch brought it back")
			}
			if !touched.IsZero() && time.Now().After(touched) {
				touched = time.Time{}
				if err := touch(ctx, s, sessionstore.Touch{ID: rec.ID, LastAccessedAt: rec.LastAccessedAt.Add(time.Second), TTL: long}); err != nil {
					return err
				}
			}
			if err := wait(ctx, pause); err != nil {
				return err
			}
		}
		return nil
	})
}

// putsAreWhole puts two records under one id in turn and reads for as long as that takes.
func putsAreWhole(ctx context.Context, s sessionstore.Store) error {
	one, other := varied(1), varied(2)
	other.ID = one.ID
	if err := putAs(ctx, s, one, long); err != nil {
		return err
	}
	const writers, readers, puts = 4, 4, 20
	var writing atomic.Int64
	writing.Store(writers)
	return together(writers+readers, func(i int) error {
		if i < writers {
			defer writing.Add(-1)
			for n := range puts {
				if err := putAs(ctx, s, []sessionstore.Record{one, other}[(i+n)%2], long); err != nil {
					return err
				}
			}
			return nil
		}
		for writing.Load() > 0 {
			got, err := s.Get(ctx, one.ID)
			if err != nil {
				return kit.Failf("while two records are put under one id, Get must find one of them; it returned the error %q", err)
			}
			if whole := normal(got); whole != normal(one) && whole != normal(other) {
				return kit.Failf("while two records are put under one id, Get must return one of them; it returned a mixture:\n  %+v", whole)
			}
			if err := wait(ctx, 100*time.Microsecond); err != nil {
				return err
			}
		}
		return nil
	})
}
