package interact

import (
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core/apps/instance"
)

func TestARequestWithoutParamsHasNoneInTheResult(t *testing.T) {
	s := &suspendedCall{open: map[string]openRequest{"q1": {inputRequest{instance.MethodRoots, nil}, nil}}}
	raw, err := newSuspendedCalls(statePrefix).suspend(s)
	if err != nil || !strings.Contains(string(raw), `"inputRequests":{"q1":{"method":"roots/list"}}`) {
		t.Errorf("the result is %s (%v)", raw, err)
	}
	s.timer.Stop()
}
