package lazycontext

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

func lazy(parent context.Context, limit time.Duration) *Context {
	c := &Context{}
	c.Init(parent, limit)
	return c
}

func TestATimeLimitCountsFromWhenSomethingWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := lazy(t.Context(), time.Second)
		defer c.Cancel()
		time.Sleep(time.Minute) //nolint:forbidigo // on the bubble's clock; nothing waits yet
		if c.Err() != nil {
			t.Fatal(c.Err())
		}
		child, stop := context.WithCancel(c)
		defer stop()
		began := time.Now()
		<-child.Done()
		if waited := time.Since(began); waited != time.Second || !errors.Is(child.Err(), context.DeadlineExceeded) || !errors.Is(c.Err(), context.DeadlineExceeded) {
			t.Errorf("after %v: %v", waited, child.Err())
		}
	})
}

func TestALazyContextEndsWithItsParentAndWithItself(t *testing.T) {
	for _, limit := range []time.Duration{0, time.Hour} {
		parent, cancel := context.WithCancel(t.Context())
		ended, waiting := lazy(parent, limit), lazy(parent, limit)
		done := waiting.Done()
		ended.Cancel()
		if !errors.Is(ended.Err(), context.Canceled) {
			t.Errorf("ended: %v", ended.Err())
		}
		<-ended.Done()
		if waiting.Err() != nil {
			t.Errorf("its sibling ended: %v", waiting.Err())
		}
		cancel()
		<-done
		if untouched := lazy(parent, limit); !errors.Is(untouched.Err(), context.Canceled) {
			t.Errorf("the parent has ended, its child reports %v", untouched.Err())
		}
	}
}

func TestAContextMadeFromALazyOneNeedsNoGoroutine(t *testing.T) {
	c := lazy(t.Context(), 0)
	defer c.Cancel()
	before := runtime.NumGoroutine()
	child, stop := context.WithCancel(c)
	defer stop()
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines, %d before", n, before)
	}
	c.Cancel()
	<-child.Done()
}

func BenchmarkLazyContext(b *testing.B) {
	for name, ask := range map[string]func(context.Context){
		"lazy":    func(parent context.Context) { lazy(parent, 0).Cancel() },
		"context": func(parent context.Context) { _, cancel := context.WithCancel(parent); cancel() },
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
