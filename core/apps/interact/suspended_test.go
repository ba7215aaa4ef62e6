package interact

import (
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core/apps/instance"
)

func TestAnInputRequestWithoutParamsOmitsThem(t *testing.T) {
	s := &suspendedCall{open: map[string]openRequest{"q1": {inputRequest{instance.MethodRoots, nil}, nil}}}
	raw, err := newSuspendedCalls(statePrefix).suspend(s)
	if err != nil || !strings.Contains(string(raw), `"inputRequests":{"q1":{"method":"roots/list"}}`) {
		t.Errorf("the result is %s (%v)", raw, err)
	}
	s.timer.Stop()
}

func TestSuspendedCallsAreLimitedPerUserAcrossKeys(t *testing.T) {
	c := newSuspendedCalls(statePrefix)
	suspend := func(user, key string) error {
		s := &suspendedCall{user: user, owner: key, cancel: func() {}, open: map[string]openRequest{}}
		_, err := c.suspend(s)
		if err == nil {
			t.Cleanup(func() { s.timer.Stop() })
		}
		return err
	}
	for i := range maxSuspendedPerUser {
		if err := suspend("mallory", strings.Repeat("k", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := suspend("mallory", "another key"); err == nil {
		t.Error("another API key got around the limit")
	}
	if err := suspend("victim", "k"); err != nil {
		t.Errorf("another user: %v", err)
	}
}
