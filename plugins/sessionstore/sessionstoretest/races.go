package sessionstoretest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// together runs n functions at once and joins their errors.
func together(n int, do func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			errs[i] = do(i)
		})
	}
	close(start)
	wg.Wait()
	return errors.Join(errs...)
}

func concurrentCalls(ctx context.Context, s sessionstore.Store) error {
	err := together(16, func(caller int) error {
		for n := range 5 {
			rec := session(newID())
			rec.Subject = fmt.Sprintf("user_%d_%d", caller, n) // so that a record of another caller shows
			if err := putAs(ctx, s, rec, long); err != nil {
				return err
			}
			if err := holds(ctx, s, rec); err != nil {
				return err
			}
			if err := s.Delete(ctx, rec.ID); err != nil {
				return kit.Failf("Delete failed: %w", err)
			}
		}
		return nil
	})
	if err != nil {
		return kit.Failf("with 16 callers at once, each with sessions of its own: %w", err)
	}
	return nil
}

func concurrentTouches(ctx context.Context, s sessionstore.Store) error {
	for n := range 20 {
		rec, err := put(ctx, s, long)
		if err != nil {
			return err
		}
		newest := rec.LastAccessedAt.Add(8 * time.Second)
		err = together(8, func(i int) error { // another one has the newest time in each round
			age := time.Duration((i+n)%8) * time.Second
			return touch(ctx, s, sessionstore.Touch{ID: rec.ID, LastAccessedAt: newest.Add(-age), TTL: long})
		})
		if err != nil {
			return err
		}
		at, err := lastAccessed(ctx, s, rec.ID)
		if err != nil {
			return err
		}
		if at.After(rec.LastAccessedAt) && at.Before(newest) {
			return kit.Failf("after 8 touches at once LastAccessedAt must be the newest, %s; it is %s (compare and set must be one step)", newest, at)
		}
	}
	return nil
}

func touchRacesDelete(ctx context.Context, s sessionstore.Store) error {
	for range 20 {
		rec, err := put(ctx, s, long)
		if err != nil {
			return err
		}
		err = together(8, func(i int) error {
			if i == 4 {
				return s.Delete(ctx, rec.ID)
			}
			return touch(ctx, s, sessionstore.Touch{ID: rec.ID, LastAccessedAt: rec.LastAccessedAt.Add(time.Duration(i) * time.Second), TTL: long})
		})
		if err != nil {
			return err
		}
		if err := gone(ctx, s, rec.ID, "after Delete, whatever touches came at the same moment (look up and write must be one step)"); err != nil {
			return err
		}
	}
	return nil
}
