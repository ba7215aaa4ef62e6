package mcphttp

import (
	"bytes"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// outlet is a session's GET stream: claimed while the request is handled, running once its
// connection is taken over.
type outlet struct {
	*queue
	since   time.Time
	running bool          // guarded by the session's mu
	over    chan struct{} // closed when the stream has ended
}

// claim takes the session's one place for a GET stream, nil when another stream has it. A client
// that lost its stream comes back at once, perhaps before its old connection was seen closed:
// hence the wait.
//
// What the client did not get after the event it names, -1 for none, comes first.
func (s *session) claim(seen int64) *outlet {
	out := &outlet{queue: newQueue(), since: time.Now(), over: make(chan struct{})}
	out.log = &s.journal
	holder := s.sit(out, seen)
	if holder != out {
		select {
		case <-holder.over:
		case <-time.After(takeover):
		}
		holder = s.sit(out, seen)
	}
	if holder != out {
		return nil
	}
	return out
}

// sit puts out in the place if that is free, and returns whose it is. A stream that was claimed
// and never ran lost its client before the first byte, and loses the place too.
func (s *session) sit(out *outlet, seen int64) *outlet {
	s.mu.Lock()
	defer s.mu.Unlock()
	if held := s.outlet; held != nil && (held.running || time.Since(held.since) < takeover) {
		return held
	}
	s.outlet, s.heard = out, true
	if seen >= 0 {
		s.journal.replay(getStream, seen, out.queue)
	}
	for _, kind := range s.missed {
		out.push(listChanged(kind))
	}
	s.missed = nil
	if s.closed {
		out.close()
	}
	return out
}

// start is false when the place was given away in the meantime.
func (s *session) start(out *outlet) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	out.running = s.outlet == out
	return out.running
}

// leave frees the place. What the client was not told any more, the next stream tells.
func (s *session) leave(out *outlet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.outlet == out {
		s.outlet = nil
		unsent, _ := out.take()
		for _, kind := range []core.Kind{core.KindTools, core.KindPrompts, core.KindResources} {
			if slices.ContainsFunc(unsent, func(e frame) bool { return bytes.Equal(e.text, listChanged(kind)) }) {
				s.missed = append(s.missed, kind)
			}
		}
	}
	close(out.over)
}
