package session

import (
	"bytes"
	"slices"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/mcphttp/sse"
)

// OpenStream opens the session's one GET stream. One that is open already ends: its client has lost it, or wants the
// new one instead.
//
// What the client did not get after the event it names, -1 for none, comes first.
func (s *Session) OpenStream(seen int64) *sse.Queue {
	g := sse.NewQueue()
	g.Record(&s.Journal, sse.GETStream, false)
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.stream
	s.stream, s.streamed = g, true
	switch {
	case seen >= 0:
		s.Journal.Replay(sse.GETStream, seen, g)
	case before != nil:
		g.Inherit(before)
	}
	if before != nil {
		before.Close()
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

// Streaming reports whether a GET stream is open.
func (s *Session) Streaming() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stream != nil
}

// CloseStream ends a stream, unless another one has replaced it. Changes of lists that the client was not sent any more come on the next
// stream.
func (s *Session) CloseStream(g *sse.Queue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stream != g {
		return
	}
	s.stream = nil
	unsent, _ := g.Take()
	for _, kind := range []core.Kind{core.KindTools, core.KindPrompts, core.KindResources} {
		if slices.ContainsFunc(unsent, func(e sse.Event) bool { return bytes.Equal(e.Text, listChanged(kind)) }) {
			s.missed = append(s.missed, kind)
		}
	}
}
