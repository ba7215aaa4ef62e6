package mcphttp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/mcphttp/sse"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tools"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// maxCalls is how many requests of a session may be in flight. A client that disconnects does not end its calls, so the
// cap on connections does not bound them.
const maxCalls = 1000

// primedFrom is the first revision in which a stream starts with an event that has only an ID.
const primedFrom = "2025-11-25"

// session is an MCP session of this process. Its methods are safe for concurrent use.
type session struct {
	ID           string
	Owner        core.Caller // who opened it; requests carry their own caller
	Capabilities json.RawMessage
	Tools        *tools.Session // subscriptions, log level and instances; set once, before the session is added to a sessionSet
	Journal      sse.Journal    // the events that its streams sent

	mu           sync.Mutex
	record       sessionstore.Record
	calls        map[int64]*call  // in flight, by number
	byID         map[string]int64 // the same, by the ID that the client sent
	last         int64            // the last number assigned
	stream       *sse.Queue       // nil if none is open
	missed       []core.Kind      // lists that changed while no GET stream was open
	streamed     bool             // a GET stream has been opened; messages sent without a stream are recorded for the next one
	idle         *time.Timer
	expired      bool // the idle time has passed; nothing new may start
	closed       bool
	questions    map[string]*openQuestion // waiting for the client, by ID as sent
	lastQuestion int64
	level        string // the log level that the client set
	takeovers    int64  // how many times another server took the session over
}

// newSession returns the session of a record.
func newSession(owner core.Caller, record sessionstore.Record, capabilities json.RawMessage) *session {
	return &session{
		ID: record.ID, Owner: owner, Capabilities: capabilities, record: record,
		calls: map[int64]*call{}, byID: map[string]int64{},
	}
}

// OwnedBy reports whether c may use the session: it must be the same person or API key, in the same workspace and view.
// The person may have logged in with a different identity provider.
func (s *session) OwnedBy(c core.Caller) bool {
	return s.Owner.Principal() == c.Principal() && s.Owner.Workspace.ID == c.Workspace.ID && s.Owner.View == c.View
}

// Record returns the session's record for the session store.
func (s *session) Record() sessionstore.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.record
}

// Revision returns the session's protocol revision.
func (s *session) Revision() string { return s.Record().ProtocolVersion }

// Begin registers the calls of one POST, all or none. It returns errEnded, errTooManyCalls or a *duplicateError.
func (s *session) Begin(calls []*call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.expired {
		return errEnded
	}
	if len(s.calls)+len(calls) > maxCalls {
		return errTooManyCalls
	}
	for i, c := range calls {
		if _, taken := s.byID[string(c.ID)]; taken {
			s.remove(calls[:i])
			return &duplicateError{ID: c.ID}
		}
		s.last++
		c.number = s.last
		if !c.out.Recorded() {
			c.out.Record(&s.Journal, s.last, s.record.ProtocolVersion >= primedFrom)
		}
		s.calls[c.number], s.byID[string(c.ID)] = c, c.number
	}
	return nil
}

func (s *session) remove(calls []*call) {
	for _, c := range calls {
		delete(s.calls, c.number)
		delete(s.byID, string(c.ID))
	}
}

// Finish removes a call from those in flight. It returns true only once per call. The goroutine that gets true answers
// the call.
func (s *session) Finish(c *call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls[c.number] != c {
		return false
	}
	s.remove([]*call{c})
	s.record.LastAccessedAt = time.Now() // the idle time starts when the last call ends
	return true
}

// Cancel ends the context of the call with the given ID, if there is one.
func (s *session) Cancel(id json.RawMessage) {
	s.mu.Lock()
	c := s.calls[s.byID[string(id)]]
	s.mu.Unlock()
	if c != nil {
		c.cancel()
	}
}

// Calls returns the in-flight calls.
func (s *session) Calls() []*call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.calls))
}

// Notify sends an app's notification. A client that lost its GET stream gets it when it reconnects.
func (s *session) Notify(n rpc.Notification) {
	text := n.Encode()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stream != nil:
		s.stream.Push(text)
	case s.streamed:
		s.Journal.Add(sse.GETStream, text)
	}
}

// ListChanged notifies the client that a list has changed. If there is no GET stream, the notification is sent when the
// client opens one.
func (s *session) ListChanged(kind core.Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stream != nil {
		s.stream.Push(listChanged(kind))
	} else if !slices.Contains(s.missed, kind) {
		s.missed = append(s.missed, kind)
	}
}

// listChangedMethod returns the notification method for a change of a list.
func listChangedMethod(kind core.Kind) string {
	return "notifications/" + string(kind) + "/list_changed"
}

func listChanged(kind core.Kind) []byte {
	return rpc.Notification{Method: listChangedMethod(kind)}.Encode()
}

// Close ends the session: it cancels the calls and ends the questions and the GET stream. It returns the calls that
// were in flight, which the caller must answer. A second Close returns none.
func (s *session) Close() []*call {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	if s.idle != nil {
		s.idle.Stop()
	}
	calls := slices.Collect(maps.Values(s.calls))
	s.remove(calls)
	stream := s.stream
	for id, q := range s.questions {
		delete(s.questions, id)
		close(q.answer)
	}
	s.mu.Unlock()
	for _, c := range calls {
		c.cancel()
	}
	if stream != nil {
		stream.Close()
	}
	return calls
}

// Touch restarts the idle time. It returns false if the session has ended.
func (s *session) Touch(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.expired {
		return false
	}
	s.record.LastAccessedAt = now // the timer reads this when it fires
	return true
}

// ExpireAfter calls expired once the session has been idle for ttl.
func (s *session) ExpireAfter(ttl time.Duration, expired func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = time.AfterFunc(ttl, func() {
		if s.expire(ttl) {
			expired()
		}
	})
}

// expire runs when the idle time may have passed and reports whether it has. A request may have come in since, and a
// session with an in-flight call is not idle.
func (s *session) expire(ttl time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := ttl - time.Since(s.record.LastAccessedAt)
	if s.closed {
		return false
	}
	if len(s.calls) > 0 {
		rest = ttl
	}
	if rest > 0 {
		s.idle.Reset(rest)
		return false
	}
	s.expired = true
	return true
}

// Reasons why a call or a session cannot start.
var (
	errEnded        = errors.New("the session has ended")
	errTooManyCalls = fmt.Errorf("this session has too many requests in flight: the limit is %d", maxCalls)
	errShutdown     = errors.New("the server is shutting down")
)

// duplicateError means that a request with the same ID is already in flight.
type duplicateError struct{ ID json.RawMessage }

func (e *duplicateError) Error() string {
	return fmt.Sprintf("a request with id %s is already in flight", e.ID)
}

// OpenStream opens the session's only GET stream. A stream that is already open ends, because its client has lost it or
// wants the new one instead.
//
// The new stream starts with the events after seen, the last event that the client received, or -1 for none.
func (s *session) OpenStream(seen int64) *sse.Queue {
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
func (s *session) FirstEventID(seen int64) string {
	if s.Revision() < primedFrom {
		return ""
	}
	if seen < 0 {
		seen = s.Journal.Newest()
	}
	return sse.EventID(sse.GETStream, seen)
}

// Streaming reports whether a GET stream is open.
func (s *session) Streaming() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stream != nil
}

// CloseStream ends a stream, unless another one has replaced it. List changes that were not sent on it are sent on the
// next stream.
func (s *session) CloseStream(g *sse.Queue) {
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

// maxState is the maximum size of a record's state in bytes, as the store's contract defines it. A session whose client
// declared more cannot be taken over.
const maxState = 64 << 10

// numbersPerServer separates the numbers that successive servers of a session assign, because a client may still refer
// to an event, a question or a stream of the previous server.
const numbersPerServer = 1 << 40

// sessionState is the part of a session's record that a server needs to take the session over.
type sessionState struct {
	User         string          `json:"user"`
	View         string          `json:"view,omitempty"` // the view of the address at which it was opened
	Capabilities json.RawMessage `json:"capabilities"`
	Level        string          `json:"level,omitempty"`
	Takeovers    int64           `json:"takeovers,omitempty"` // how many times the session was taken over
}

// restoreSession returns the session of a record that another server wrote, for the caller who owns it. It returns
// false if the record lacks necessary state or if another user opened the session. That user may have been deleted and
// then created again under the same name.
func restoreSession(owner core.Caller, record sessionstore.Record) (s *session, level string, ok bool) {
	var kept sessionState
	if json.Unmarshal([]byte(record.State), &kept) != nil || len(kept.Capabilities) == 0 || kept.User != owner.User.ID || kept.View != owner.View {
		return nil, "", false
	}
	s = newSession(owner, record, kept.Capabilities)
	s.level, s.takeovers = kept.Level, kept.Takeovers+1
	s.missed = []core.Kind{core.KindTools, core.KindPrompts, core.KindResources}
	first := s.takeovers * numbersPerServer
	s.last, s.lastQuestion = first, first
	s.Journal.StartAfter(first)
	return s, kept.Level, true
}

// openedBy returns the ID of the user who opened a record's session, or "" if the record does not contain it, and the
// view of the address at which it was opened.
func openedBy(record sessionstore.Record) (user, view string) {
	var kept sessionState
	_ = json.Unmarshal([]byte(record.State), &kept) // an invalid state does not contain a user
	return kept.User, kept.View
}

// Lease returns the lease of the server that has the session, according to its record.
func (s *session) Lease() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.record.Owner
}

// RecordFor returns the session's record with the given lease as its owner. If lease is "", it returns the record for a
// store that does not support takeovers.
func (s *session) RecordFor(lease string) sessionstore.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	rec := s.record
	rec.Owner, rec.State = lease, ""
	if lease == "" {
		return rec
	}
	text, err := json.Marshal(sessionState{User: s.Owner.User.ID, View: s.Owner.View, Capabilities: s.Capabilities, Level: s.level, Takeovers: s.takeovers})
	if err == nil && len(text) <= maxState {
		rec.State = string(text)
	}
	return rec
}

// Keep records the owner and state of a record that was written to the store.
func (s *session) Keep(rec sessionstore.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record.Owner, s.record.State = rec.Owner, rec.State
}

// SetLevel records the log level that the client set, for a server that takes the session over.
func (s *session) SetLevel(level string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.level = level
}
