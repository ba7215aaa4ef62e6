package examples

import (
	"context"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core/pluginhost"
)

// killUnderCalls kills the only plugin of h n times with SIGKILL while several goroutines make calls. No call
// may fail: each waits for the next process.
func killUnderCalls(t *testing.T, h *pluginhost.Host, n int, call func(context.Context) error) {
	t.Helper()
	stop := make(chan struct{})
	var callers sync.WaitGroup
	var mu sync.Mutex
	var calls int
	var slowest time.Duration
	for range 4 {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				began := time.Now()
				err := call(t.Context())
				took := time.Since(began)
				mu.Lock()
				calls++
				slowest = max(slowest, took)
				mu.Unlock()
				if err != nil {
					t.Errorf("a call failed: %v", err)
					return
				}
			}
		})
	}
	for range n {
		killOnce(t, h)
		for range 10 { // so that every process is killed while it is working
			if err := call(t.Context()); err != nil {
				t.Errorf("a call after the replacement failed: %v", err)
			}
		}
	}
	close(stop)
	callers.Wait()
	if got := h.Status()[0].Restarts; got != n {
		t.Errorf("the plugin was restarted %d times, want %d", got, n)
	}
	t.Logf("%d calls over %d kills; the slowest took %v", calls, n, slowest.Round(time.Millisecond))
}

// killOnce kills the plugin, and returns when another process has replaced it.
func killOnce(t *testing.T, h *pluginhost.Host) {
	t.Helper()
	before := h.Status()[0]
	if err := syscall.Kill(before.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(patience); time.Now().Before(until); <-tick.C {
		if now := h.Status()[0]; now.State == "running" && now.PID != before.PID {
			return
		}
	}
	t.Fatalf("the plugin was not replaced: %+v", h.Status()[0])
}
