package footprint

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

func TestOneProcessorIsUsedOnlyWhileItIsEnough(t *testing.T) {
	var g governor
	for i, step := range []struct {
		share        float64
		in           time.Duration
		one, changed bool
	}{
		{0.5, calmTime / 2, false, false},
		{0.7, shortLook, false, false}, // starts the calm anew
		{0.5, calmTime / 2, false, false},
		{0.5, calmTime / 2, true, true},
		{0.1, calmTime, true, false},
		{0.75, calmTime, true, false}, // more than few, but one does
		{0.9, shortLook, false, true},
		{0.75, calmTime, false, false}, // less than most, but it was not calm
		{0.5, calmTime, true, true},
	} {
		if one, changed := g.see(step.share, step.in); one != step.one || changed != step.changed {
			t.Errorf("look %d: one is %v, changed %v", i, one, changed)
		}
	}
}

func TestAProcessThatHasLittleToDoUsesOneProcessorUntilItHasMore(t *testing.T) {
	if runtime.NumCPU() == 1 {
		t.Skip("there is only one")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { Processors(ctx, ""); close(ended) }()
	await := func(what string, reached func() bool) {
		t.Helper()
		deadline := time.Now().Add(20 * time.Second)
		for tick := time.NewTicker(10 * time.Millisecond); !reached(); <-tick.C {
			if time.Now().After(deadline) {
				t.Fatal(what)
			}
		}
	}
	await("an idle process keeps all of them", func() bool { return runtime.GOMAXPROCS(0) == 1 })
	var idle atomic.Bool
	go func() {
		for n := 0; !idle.Load(); n++ { // busy
		}
	}()
	await("a busy process keeps one", func() bool { return runtime.GOMAXPROCS(0) > 1 })
	idle.Store(true)
	await("a process that is idle again keeps all of them", func() bool { return runtime.GOMAXPROCS(0) == 1 })
	cancel()
	<-ended
	if runtime.GOMAXPROCS(0) == 1 {
		t.Error("one processor is left in use")
	}
}

func TestTheOperatorSaysHowManyProcessors(t *testing.T) {
	Processors(t.Context(), "3") // returns at once
}
