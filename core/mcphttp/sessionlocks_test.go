package mcphttp

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestOnlyOneCallerAtATimeMovesASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var locks sessionLocks
		unlock, err := locks.Lock(t.Context(), "one")
		if err != nil {
			t.Fatal(err)
		}
		other, err := locks.Lock(t.Context(), "other") // must not block
		if err != nil {
			t.Fatal(err)
		}
		other()
		left, leave := context.WithCancel(t.Context())
		results, order := make(chan error, 2), make(chan string, 2)
		go func() {
			_, err := locks.Lock(left, "one")
			results <- err
		}()
		go func() {
			release, err := locks.Lock(t.Context(), "one")
			order <- "second"
			release()
			results <- err
		}()
		synctest.Wait()
		leave()
		if err := <-results; !errors.Is(err, context.Canceled) {
			t.Errorf("the caller that gave up got %v", err)
		}
		order <- "first"
		unlock()
		if err := <-results; err != nil || <-order != "first" {
			t.Errorf("the lock was held by two callers at once, or failed with %v", err)
		}
		synctest.Wait()
		if len(locks.locked) != 0 {
			t.Errorf("%d locks remain", len(locks.locked))
		}
	})
}
