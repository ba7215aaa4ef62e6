package mcphttp

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestALazyTimeoutRunsOnlyWhenSomethingWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, cancel := context.WithCancelCause(t.Context())
		p := withLazyTimeout(parent, time.Second)
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
	ended, waiting := withLazyTimeout(parent, time.Hour), withLazyTimeout(parent, time.Hour)
	done := waiting.Done()
	ended.end()
	if !errors.Is(ended.Err(), context.Canceled) {
		t.Errorf("ended: %v", ended.Err())
	}
	<-ended.Done()
	cancel()
	<-done
	if untouched := withLazyTimeout(parent, time.Hour); !errors.Is(untouched.Err(), context.Canceled) {
		t.Errorf("the parent has ended, its child says %v", untouched.Err())
	}
}

func BenchmarkLazyTimeout(b *testing.B) {
	for name, ask := range map[string]func(context.Context){
		"lazy":    func(parent context.Context) { withLazyTimeout(parent, time.Second).end() },
		"context": func(parent context.Context) { _, cancel := context.WithTimeout(parent, time.Second); cancel() },
	} {
		b.Run(name, func(b *testing.B) {
			parent, cancel := context.WithCancel(b.Context())
			defer cancel()
			b.ReportAllocs()
			for b.Loop() {
				ask(parent)
			}
		})
	}
}
