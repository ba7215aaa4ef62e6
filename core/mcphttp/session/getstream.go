package session

import (
	"bytes"
	"slices"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/mcphttp/sse"
)

// OpenStream opens the session's only GET stream. A stream that is already open ends, because its client has lost it or
// wants the new one instead.
//
// The new stream starts with the events after seen, the last event that the client received, or -1 for none.
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

// FirstEventID returns the ID of the event that a GET stream starts with, or "" in revisions without one. seen is the
// last event that the client received, or -1 for none.
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

// CloseStream ends a stream, unless another one has replaced it. List changes that were not sent on it are sent on the
// next stream.
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
