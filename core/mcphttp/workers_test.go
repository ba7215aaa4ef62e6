package mcphttp

import (
	"fmt"
	"sync"
	"testing"
)

func TestCallGoroutinesAreReusedAndBounded(t *testing.T) {
	var running sync.WaitGroup
	block := make(chan struct{})
	w := newWorkers(func(*call) {
		defer running.Done()
		<-block
	})
	for range 3 * maxIdle {
		running.Add(1)
		w.start(t.Context(), nil)
	}
	close(block)
	running.Wait()
	for range 100 {
		running.Add(1)
		w.start(t.Context(), nil)
		running.Wait()
	}
	if n := len(w.idle); n == 0 || n > maxIdle {
		t.Errorf("%d goroutines are waiting", n)
	}
}

// deep uses as much stack as a real call, which passes through the namespace, the apps and an app's link.
//
//go:noinline
func deep(n int) byte {
	var frame [256]byte
	if n > 0 {
		frame[n] = deep(n - 1)
	}
	return frame[n/2]
}

// BenchmarkWorkers compares calls over HTTP in reused goroutines with calls in new ones. On a busy server with 16
// clients, new goroutines used 21% more CPU time per call.
func BenchmarkWorkers(b *testing.B) {
	for name, idle := range map[string]int{"reused": maxIdle, "new": 0} {
		bench(b, func(r *rig) {
			r.endpoint.workers.idle = make(chan struct{}, idle)
			r.fakeNamespace.before = func() { deep(30) }
			w := r.join(alice)
			b.Run(name, func(b *testing.B) {
				b.ReportAllocs()
				for n := range b.N {
					r.say("POST", w, callBody(fmt.Sprint(n), "demo__echo", "{}"))
				}
			})
		})
	}
}
