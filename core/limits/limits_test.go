package limits

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

func TestOnePrincipalCannotTakeAnothersShare(t *testing.T) {
	l := New(Settings{AtATime: map[Kind]int{Streams: 2}})
	var release func()
	for range 2 {
		var err error
		if release, err = l.Acquire(Streams, "alice"); err != nil {
			t.Fatal(err)
		}
	}
	_, err := l.Acquire(Streams, "alice")
	limited, ok := errors.AsType[*core.Error](err)
	if !ok || limited.Code != core.CodeRateLimited || limited.RetryAfter == 0 {
		t.Fatalf("a third place: %v", err)
	}
	if _, err := l.Acquire(Streams, "bob"); err != nil {
		t.Errorf("another principal: %v", err)
	}
	if _, err := l.Acquire(ChatRuns, "alice"); err != nil {
		t.Errorf("a kind without a limit: %v", err)
	}
	release()
	if _, err := l.Acquire(Streams, "alice"); err != nil {
		t.Errorf("after one was released: %v", err)
	}
}

func TestCallsPerSecondAreLimitedAndTheErrorSaysHowLongToWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Settings{CallsPerSecond: 5})
		for i := range 10 {
			if err := l.AllowCall("alice"); err != nil {
				t.Fatalf("call %d: %v", i, err)
			}
		}
		limited, ok := errors.AsType[*core.Error](l.AllowCall("alice"))
		if !ok || limited.Code != core.CodeRateLimited || limited.RetryAfter != 200*time.Millisecond {
			t.Fatalf("%+v", limited)
		}
		if err := l.AllowCall("bob"); err != nil {
			t.Errorf("another principal: %v", err)
		}
		time.Sleep(limited.RetryAfter) //nolint:forbidigo // the clock of synctest
		if err := l.AllowCall("alice"); err != nil {
			t.Errorf("after the time to wait: %v", err)
		}
	})
}

func TestNothingIsLimitedWithoutLimits(t *testing.T) {
	var l *Limits
	for range 100 {
		if _, err := l.Acquire(Calls, "alice"); err != nil || l.AllowCall("alice") != nil {
			t.Fatal(err)
		}
	}
}

func TestAResponseOfAnySizeIsAllowedIfNothingElseIsUnread(t *testing.T) {
	l := New(Settings{UnreadBytes: 400})
	done, err := l.HoldResponse("a", 1000)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.HoldResponse("a", 1); core.CodeOf(err) != core.CodeRateLimited {
		t.Errorf("one more: %v", err)
	}
	for _, name := range []string{"b", "c", "d"} {
		if _, err := l.HoldResponse(name, 100); err != nil {
			t.Errorf("another principal: %v", err)
		}
	}
	if _, err := l.HoldResponse("e", 1); core.CodeOf(err) != core.CodeRateLimited {
		t.Errorf("beyond the total: %v", err)
	}
	done()
	if _, err := l.HoldResponse("a", 100); err != nil {
		t.Errorf("after it was read: %v", err)
	}
	if done, err := (*Limits)(nil).HoldResponse("a", 1<<40); err != nil {
		t.Errorf("without limits: %v", err)
	} else {
		done()
	}
}
