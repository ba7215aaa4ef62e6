package harness

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/internal/testkit"
)

// Load makes calls at a constant rate until it is stopped, whether or not the calls succeed.
type Load struct {
	stop  chan struct{}
	ended sync.WaitGroup

	mu       sync.Mutex
	Calls    int
	Statuses map[int]int
	Failures []Failure
}

// Failure is a failed call.
type Failure struct {
	began, Ended time.Time
	status       int
	Err          error
}

// StartLoad starts a load of perSecond calls per second. The clients take turns.
func StartLoad(t *testing.T, perSecond int, clients ...*MCPClient) *Load {
	l := &Load{stop: make(chan struct{}), Statuses: map[int]int{}}
	l.ended.Go(func() {
		pace := time.NewTicker(time.Second / time.Duration(perSecond))
		defer pace.Stop()
		for i := 0; ; i++ {
			select {
			case <-l.stop:
				return
			case <-pace.C:
				l.ended.Go(func() { l.call(clients[i%len(clients)], fmt.Sprintf("call-%d", i)) })
			}
		}
	})
	t.Cleanup(l.Stop)
	return l
}

func (l *Load) call(c *MCPClient, nonce string) {
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	began := time.Now()
	status, err := c.Echo(ctx, nonce)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Calls++
	l.Statuses[status]++
	if err != nil {
		l.Failures = append(l.Failures, Failure{began, time.Now(), status, err})
	}
}

// Stop ends the load and waits for the responses. It may be called more than once.
func (l *Load) Stop() {
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	l.ended.Wait()
}

// answered returns the number of calls that have finished.
func (l *Load) answered() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Calls
}

// WaitForCalls waits until this many more calls have finished.
func (l *Load) WaitForCalls(t *testing.T, calls int) {
	t.Helper()
	until := l.answered() + calls
	if !testkit.Within(Timeout, func() bool { return l.answered() >= until }) {
		t.Fatalf("%d calls were answered, waiting for %d", l.answered(), until)
	}
}
