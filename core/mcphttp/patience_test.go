package mcphttp

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestPatienceEndsOnlyWhenSomebodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, cancel := context.WithCancelCause(t.Context())
		p := withPatience(parent, time.Second)
		time.Sleep(time.Minute) //nolint:forbidigo // on the bubble's clock; nobody waits yet
		if p.Err() != nil {
			t.Fatal(p.Err())
		}
		child, stop := context.WithCancel(p)
		defer stop()
		began := time.Now()
		<-child.Done()
		if waited := time.Since(began); waited != time.Second || !errors.Is(child.Err(), context.DeadlineExceeded) || !errors.Is(p.Err(), context.DeadlineExceeded) {
			t.Errorf("after %v: %v", waited, child.Err())
		}
		p.end()
		cancel(nil)
	})
}

func TestPatienceEndsWithItsParentAndWithItself(t *testing.T) {
	parent, cancel := context.WithCancel(t.Context())
	ended, waiting := withPatience(parent, time.Hour), withPatience(parent, time.Hour)
	done := waiting.Done()
	ended.end()
	if !errors.Is(ended.Err(), context.Canceled) {
		t.Errorf("ended: %v", ended.Err())
	}
	<-ended.Done()
	cancel()
	<-done
	if untouched := withPatience(parent, time.Hour); !errors.Is(untouched.Err(), context.Canceled) {
		t.Errorf("the parent has ended, its child says %v", untouched.Err())
	}
}
