package footprint

import (
	"context"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheGCPercentageIsSetUnlessTheOperatorSetIt(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	if Pace("50"); debug.SetGCPercent(100) != 100 {
		t.Error("GOGC was overridden")
	}
	if Pace(""); debug.SetGCPercent(100) != gcPercent {
		t.Error("the GC percentage was not set")
	}
}

func TestTheProcessBecomesIdleOnceAfterEachBusyPeriod(t *testing.T) {
	k := keeper{busy: true}
	for i, step := range []struct {
		allocated uint64
		want      bool
	}{{100, true}, {200, false}, {200 + idleBytes, false}, {200 + 3*idleBytes, false}, {300 + 3*idleBytes, true}, {301 + 3*idleBytes, false}} {
		if got := k.becameIdle(step.allocated); got != step.want {
			t.Errorf("check %d: becameIdle is %v", i, got)
		}
	}
}

func TestKeepEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { Keep(ctx); close(done) }()
		time.Sleep(3 * checkInterval) //nolint:forbidigo // synctest's fake clock
		cancel()
		<-done
	})
}
