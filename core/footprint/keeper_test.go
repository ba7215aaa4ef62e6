package footprint

import (
	"context"
	"os"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"
)

func TestThePaceIsSetUnlessTheOperatorDid(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	if Pace("50"); debug.SetGCPercent(100) != 100 {
		t.Error("GOGC was overruled")
	}
	if Pace(""); debug.SetGCPercent(100) != pace {
		t.Error("the pace was not set")
	}
}

func TestItIsCalmOnceAfterEachBusyTime(t *testing.T) {
	k := keeper{busy: true}
	for i, step := range []struct {
		allocated uint64
		want      bool
	}{{100, true}, {200, false}, {200 + quiet, false}, {200 + 3*quiet, false}, {300 + 3*quiet, true}, {301 + 3*quiet, false}} {
		if got := k.calmed(step.allocated); got != step.want {
			t.Errorf("look %d: calmed is %v", i, got)
		}
	}
}

func TestKeepEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { Keep(ctx); close(done) }()
		time.Sleep(3 * look) //nolint:forbidigo // on the bubble's clock, which does not wait
		cancel()
		<-done
	})
}

func TestTheProgramGoesOnAfterItsPagesWereReleased(t *testing.T) {
	for range 3 {
		releaseProgram()
		if _, err := os.Executable(); err != nil {
			t.Fatal(err)
		}
	}
}
