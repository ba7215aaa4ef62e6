package session

import (
	"bytes"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/mcphttp/sse"
)

// takeover is how long a second GET waits for the first one's connection to be seen closed before it is
// refused, and how long a stream may take to start before its place is free again.
const takeover = 250 * time.Millisecond

// GETStream is a session's stream of server messages: claimed while the request is handled, running
// once its connection is taken over.
type GETStream struct {
	*sse.Queue
	since   time.Time
	running bool          // guarded by the session's mu
	ended   chan struct{} // closed when the stream has ended
}

// OpenStream claims the session's one GET stream, nil when another one has it. A client that lost its
// stream comes back at once, perhaps before its old connection was seen closed: hence the wait.
//
// What the client did not get after the event it names, -1 for none, comes first.
func (s *Session) OpenStream(seen int64) *GETStream {
	g := &GETStream{Queue: sse.NewQueue(), since: time.Now(), ended: make(chan struct{})}
	g.Record(&s.Journal, sse.GETStream, false)
	holder := s.claim(g, seen)
	if holder != g {
		select {
		case <-holder.ended:
		case <-time.After(takeover):
		}
		holder = s.claim(g, seen)
	}
	if holder != g {
		return nil
	}
	return g
}

// claim makes g the stream if there is none, and returns which one there is. A stream that was claimed
// and never ran lost its client before the first byte, and loses its place too.
func (s *Session) claim(g *GETStream, seen int64) *GETStream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if held := s.stream; held != nil && (held.running || time.Since(held.since) < takeover) {
		return held
	}
	s.stream, s.streamed = g, true
	if seen >= 0 {
		s.Journal.Replay(sse.GETStream, seen, g.Queue)
	}
	for _, kind := range s.missed {
		g.Push(listChanged(kind))
	}
	s.missed = nil
	if s.closed {
		g.Close()
	}
	return g
}

// FirstEventID is the id of the event that a GET stream begins with, "" in revisions without one. seen
// is the event the client got last, -1 for none.
func (s *Session) FirstEventID(seen int64) string {
	if s.Revision() < primedFrom {
		return ""
	}
	if seen < 0 {
		seen = s.Journal.Newest()
	}
	return sse.EventID(sse.GETStream, seen)
}

// StartStream reports whether a claimed stream may run: its place may have been given away meanwhile.
func (s *Session) StartStream(g *GETStream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	g.running = s.stream == g
	return g.running
}

// Streaming reports whether a GET stream is open.
func (s *Session) Streaming() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stream != nil
}

// CloseStream frees the place. Changes of lists that the client was not sent any more come on the next
// stream.
func (s *Session) CloseStream(g *GETStream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stream == g {
		s.stream = nil
		unsent, _ := g.Take()
		for _, kind := range []core.Kind{core.KindTools, core.KindPrompts, core.KindResources} {
			if slices.ContainsFunc(unsent, func(e sse.Event) bool { return bytes.Equal(e.Text, listChanged(kind)) }) {
				s.missed = append(s.missed, kind)
			}
		}
	}
	close(g.ended)
}
