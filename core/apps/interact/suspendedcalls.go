package interact

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

const (
	statePrefix          = "ropewalk.suspended." // begins the requestState of suspended calls; part of the wire format
	maxSuspended         = 256
	maxSuspendedPerOwner = 16
	suspendTimeout       = 10 * time.Minute // how long a call is kept for its client
	minSuspension        = time.Minute      // how long it is kept at least before another call may take its place
)

// suspendedCalls keeps the calls that wait for their client's input.
type suspendedCalls struct {
	prefix string // begins every requestState

	mu    sync.Mutex
	calls map[string]*suspendedCall // by requestState
}

func newSuspendedCalls(prefix string) *suspendedCalls {
	return &suspendedCalls{prefix: prefix, calls: map[string]*suspendedCall{}}
}

// wait waits for the call's result or its next requests, on behalf of one request of the client.
func (c *suspendedCalls) wait(ctx context.Context, s *suspendedCall) (json.RawMessage, error) {
	for {
		select {
		case <-s.done:
			return s.result, s.err
		case <-ctx.Done():
			s.cancel()
			return nil, ctx.Err()
		case <-s.asked:
			if s.hasOpenRequests() { // asked may stand for a request that was answered meanwhile
				return c.suspend(s)
			}
		}
	}
}

// suspend keeps the call and returns the result that asks its client for input.
func (c *suspendedCalls) suspend(s *suspendedCall) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notify = nil
	requests := make(map[string]inputRequest, len(s.open))
	for name, r := range s.open {
		requests[name] = r.inputRequest
	}
	state := c.prefix + rand.Text()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.evictFor(s.owner) {
		s.cancel()
		return nil, core.Errorf(core.CodeUnavailable, "too many calls wait for input of their clients").WithRetryAfter(time.Minute)
	}
	c.calls[state], s.since = s, time.Now()
	s.timer = time.AfterFunc(suspendTimeout, func() {
		if c.remove(state) != nil {
			s.cancel()
		}
	})
	return json.Marshal(map[string]any{"resultType": "input_required", "inputRequests": requests, "requestState": state})
}

// evictFor cancels the call that has waited longest where one more of an owner would be too many, since
// clients need not come back. It reports false when it may cancel none. The caller holds the mutex.
func (c *suspendedCalls) evictFor(owner string) bool {
	ownerFull := c.countOf(owner) >= maxSuspendedPerOwner
	if !ownerFull && len(c.calls) < maxSuspended {
		return true
	}
	var oldest string
	for state, s := range c.calls {
		if (!ownerFull || s.owner == owner) && (oldest == "" || s.since.Before(c.calls[oldest].since)) {
			oldest = state
		}
	}
	s := c.calls[oldest]
	if time.Since(s.since) < minSuspension {
		return false
	}
	delete(c.calls, oldest)
	s.timer.Stop()
	s.cancel()
	return true
}

// countOf counts the suspended calls of one owner. The caller holds the mutex.
func (c *suspendedCalls) countOf(owner string) (n int) {
	for _, s := range c.calls {
		if s.owner == owner {
			n++
		}
	}
	return n
}

func (c *suspendedCalls) remove(state string) *suspendedCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.calls[state]
	delete(c.calls, state)
	return s
}

// removeIf removes and returns a call that matches, nil when there is none.
func (c *suspendedCalls) removeIf(state string, match func(*suspendedCall) bool) *suspendedCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.calls[state]
	if s == nil || !match(s) {
		return nil
	}
	delete(c.calls, state)
	return s
}

// SuspendedCalls returns how many calls wait for input of their clients.
func (b *Broker) SuspendedCalls() int {
	b.suspended.mu.Lock()
	defer b.suspended.mu.Unlock()
	return len(b.suspended.calls)
}
