package mcphttp

import (
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core/mcphttp/sse"
)

// slowCalls signals responses whose calls have no answer after startLimit. One timer looks at all of them,
// at most once each startLimit: a timer for each call costs nine times as much (BenchmarkSlowCalls), and as
// it is nearly always the next one to fire, setting it may wake another thread. The zero value is ready.
type slowCalls struct {
	mu      sync.Mutex
	waiting map[*sse.Response]bool // true for those that the last look found
	timer   *time.Timer            // nil until first needed
	running bool                   // the timer is set
}

// add has a response signalled in startLimit, or up to twice that.
func (s *slowCalls) add(out *sse.Response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting == nil {
		s.waiting = map[*sse.Response]bool{}
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

// remove has a response not signalled any more.
func (s *slowCalls) remove(out *sse.Response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, out)
}

// look signals the responses that the look before this one found, and sets the timer again while some wait.
func (s *slowCalls) look() {
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
