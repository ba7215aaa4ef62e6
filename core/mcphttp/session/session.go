package session

import (
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

// Session is an MCP session of this process. Its methods are safe for concurrent use.
type Session struct {
	ID           string
	Owner        core.Caller // who opened it; requests carry their own caller
	Capabilities json.RawMessage
	Tools        *tools.Session // subscriptions, log level and instances; set once, before the session is added to a Set
	Journal      sse.Journal    // of the events that its streams sent

	mu           sync.Mutex
	record       sessionstore.Record
	calls        map[int64]*Call  // in flight, by number
	byID         map[string]int64 // the same, by the ID that the client sent
	last         int64            // the last number assigned
	stream       *sse.Queue       // nil when none is open
	missed       []core.Kind      // lists that changed while no GET stream was open
	streamed     bool             // a GET stream has been opened; messages sent without one are recorded for the next
	idle         *time.Timer
	expired      bool // the idle time has passed; nothing new may start
	closed       bool
	questions    map[string]*openQuestion // waiting for the client, by ID as sent
	lastQuestion int64
	level        string // the log level that the client set
	takeovers    int64  // how often another server took the session over
}

// New returns the session of a record.
func New(owner core.Caller, record sessionstore.Record, capabilities json.RawMessage) *Session {
	return &Session{
		ID: record.ID, Owner: owner, Capabilities: capabilities, record: record,
		calls: map[int64]*Call{}, byID: map[string]int64{},
	}
}

// OwnedBy reports whether c may use the session: the same person or API key in the same workspace and view, whichever
// identity provider the person logged in with.
func (s *Session) OwnedBy(c core.Caller) bool {
	return s.Owner.Principal() == c.Principal() && s.Owner.Workspace.ID == c.Workspace.ID && s.Owner.View == c.View
}

// Record returns the session's record for the session store.
func (s *Session) Record() sessionstore.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.record
}

// Revision returns the session's protocol revision.
func (s *Session) Revision() string { return s.Record().ProtocolVersion }

// Begin registers the calls of one POST, all or none. It returns ErrEnded, ErrTooManyCalls or a *DuplicateError.
func (s *Session) Begin(calls []*Call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.expired {
		return ErrEnded
	}
	if len(s.calls)+len(calls) > maxCalls {
		return ErrTooManyCalls
	}
	for i, c := range calls {
		if _, taken := s.byID[string(c.ID)]; taken {
			s.remove(calls[:i])
			return &DuplicateError{ID: c.ID}
		}
		s.last++
		c.Number = s.last
		if !c.Out.Recorded() {
			c.Out.Record(&s.Journal, s.last, s.record.ProtocolVersion >= primedFrom)
		}
		s.calls[c.Number], s.byID[string(c.ID)] = c, c.Number
	}
	return nil
}

func (s *Session) remove(calls []*Call) {
	for _, c := range calls {
		delete(s.calls, c.Number)
		delete(s.byID, string(c.ID))
	}
}

// Finish removes a call from those in flight. It returns true only once per call; whoever gets true answers the call.
func (s *Session) Finish(c *Call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls[c.Number] != c {
		return false
	}
	s.remove([]*Call{c})
	s.record.LastAccessedAt = time.Now() // the idle time starts when the last call ends
	return true
}

// Cancel ends the context of the call with the given ID, if there is one.
func (s *Session) Cancel(id json.RawMessage) {
	s.mu.Lock()
	c := s.calls[s.byID[string(id)]]
	s.mu.Unlock()
	if c != nil {
		c.Cancel()
	}
}

// Calls returns the in-flight calls.
func (s *Session) Calls() []*Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.calls))
}

// Notify sends an app's notification. A client that lost its GET stream gets it when it reconnects.
func (s *Session) Notify(n rpc.Notification) {
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

// ListChanged notifies the client that a list has changed. Without a GET stream, the notification is sent when the
// client opens one.
func (s *Session) ListChanged(kind core.Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stream != nil {
		s.stream.Push(listChanged(kind))
	} else if !slices.Contains(s.missed, kind) {
		s.missed = append(s.missed, kind)
	}
}

// ListChangedMethod returns the notification method for a change of a list.
func ListChangedMethod(kind core.Kind) string {
	return "notifications/" + string(kind) + "/list_changed"
}

func listChanged(kind core.Kind) []byte {
	return rpc.Notification{Method: ListChangedMethod(kind)}.Encode()
}

// Close ends the session: it cancels the calls and ends the questions and the GET stream. It returns the calls that
// were in flight, which the caller must answer. A second Close returns none.
func (s *Session) Close() []*Call {
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
		c.Cancel()
	}
	if stream != nil {
		stream.Close()
	}
	return calls
}

// Touch restarts the idle time. It returns false when the session has ended.
func (s *Session) Touch(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.expired {
		return false
	}
	s.record.LastAccessedAt = now // the timer reads this when it fires
	return true
}

// ExpireAfter calls expired once the session has been idle for ttl.
func (s *Session) ExpireAfter(ttl time.Duration, expired func()) {
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
func (s *Session) expire(ttl time.Duration) bool {
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

// Call is a request in flight.
type Call struct {
	ID     json.RawMessage // as the client sent it
	Number int64           // unique in its session, from 1
	Out    *sse.Response   // where its answer goes, and any messages about it before that
	Cancel func()          // ends its context
}

// Reasons why a call or a session cannot start.
var (
	ErrEnded        = errors.New("the session has ended")
	ErrTooManyCalls = fmt.Errorf("this session has too many requests in flight: the limit is %d", maxCalls)
	ErrShutdown     = errors.New("the server is shutting down")
	ErrFull         = errors.New("the limit is reached")
	ErrShare        = fmt.Errorf("the user has too many: %w", ErrFull) // for sessions of one user
)

// DuplicateError means that a request with the same ID is already in flight.
type DuplicateError struct{ ID json.RawMessage }

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("a request with id %s is already in flight", e.ID)
}
