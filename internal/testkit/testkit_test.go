package testkit_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/internal/testkit"
)

func TestALogIsReadWhileOthersWriteIt(t *testing.T) {
	var log testkit.Log
	logger := log.Logger(hclog.Info, true)
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for range 100 {
				logger.Info("line", "n", 1)
				_ = log.String()
			}
		})
	}
	writers.Wait()
	if n := len(log.Entries()); n != 400 {
		t.Errorf("got %d entries, want 400", n)
	}
	if log.Reset(); log.String() != "" {
		t.Error("Reset should clear the log")
	}
}

func TestWithinChecksOnceMoreAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if testkit.Within(time.Second, func() bool { return false }) {
			t.Error("Within should return false for a condition that is never true")
		}
		if waited := time.Since(start); waited != time.Second {
			t.Errorf("waited %s", waited)
		}
		if !testkit.Within(time.Second, func() bool { return time.Since(start) >= 2*time.Second }) {
			t.Error("Within should check the condition once more at the deadline")
		}
	})
}

func TestReceiveReportsAClosedChannel(t *testing.T) {
	c := make(chan int, 1)
	c <- 7
	if v, open := testkit.Receive(t, "a value", c); v != 7 || !open {
		t.Error(v, open)
	}
	close(c)
	if _, open := testkit.Receive(t, "the end", c); open {
		t.Error("Receive should report that the channel is closed")
	}
}
