package sse

import (
	"sync"
	"time"
)

// startLimit is how long a call may take before its response is signalled, at least; it is twice as long at most.
const startLimit = 20 * time.Millisecond

// SlowCalls signals responses whose calls have no answer after 20 ms, or up to twice that. One timer looks at all
// of them: a timer for each call costs nine times as much (BenchmarkSlowCalls), and as it is nearly always the
// next one to fire, setting it may wake another thread. The zero value is ready. It is safe for concurrent use.
type SlowCalls struct {
	mu      sync.Mutex
	waiting map[*Response]bool // true for those that the last look found
	timer   *time.Timer        // nil until first needed
	running bool               // the timer is set
}

// Add has a response signalled when its calls are slow.
func (s *SlowCalls) Add(out *Response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting == nil {
		s.waiting = map[*Response]bool{}
	}
	s.waiting[out] = false
	switch {
	case s.running:
		return
	case s.timer == nil:
		s.timer = time.AfterFunc(startLimit, s.look)
	default:
		s.timer.Reset(startLimit)
	}
	s.running = true
}

// Remove has a response not signalled any more.
func (s *SlowCalls) Remove(out *Response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, out)
}

// look signals the responses that the look before this one found, and sets the timer again while some wait.
func (s *SlowCalls) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for out, found := range s.waiting {
		if found {
			delete(s.waiting, out)
			out.Signal()
		} else {
			s.waiting[out] = true
		}
	}
	if s.running = len(s.waiting) > 0; s.running {
		s.timer.Reset(startLimit)
	}
}
