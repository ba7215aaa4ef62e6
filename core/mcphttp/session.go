package mcphttp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tools"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// maxInFlight is how many requests of a session may be in flight. A client that leaves does not
// end its calls, so connections alone do not bound them.
const maxInFlight = 1000

// session is one MCP session of this process: who may use it, what is in flight, and where
// messages of the server's own go.
type session struct {
	owner core.Caller // who opened it; requests carry their own caller
	wire  *wire
	count func(calls int) // tells the set that calls ended

	mu      sync.Mutex
	record  sessionstore.Record
	calls   map[int64]*call  // in flight, by the id the SDK sees
	byID    map[string]int64 // the same by the id the client wrote
	last    int64            // the last id given out
	outlet  *outlet          // the GET stream; nil when none is open
	missed  []core.Kind      // lists whose changes found no GET stream
	heard   bool             // a GET stream was open before: what finds none is kept for it
	idle    *time.Timer
	expired bool // the idle time is over; nothing new starts
	closed  bool

	journal      journal             // of what its streams said
	place        *tools.Session      // its place in the hall; never changes after it was opened
	capabilities json.RawMessage     // of the client, as initialize said; never changes after
	questions    map[string]*waiting // that wait for the client, by id as written
	lastQuestion int64
}

// call is one request in flight. Its caller is the one of its own HTTP request.
type call struct {
	message
	number  int64
	caller  core.Caller
	out     *exchange
	session *session  // nil without one
	since   time.Time // when it came; of a call in a session
	modern  bool      // of the revision without sessions
}

// number is how a call's id travels through the SDK, which may not see the client's: it would
// round large numbers and cannot hold fractions.
func number(n int64) jsonrpc.ID {
	id, _ := jsonrpc.MakeID(float64(n)) // exact below 2^53; never fails for a float64
	return id
}

func (s *session) snapshot() sessionstore.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.record
}

// touch starts the idle time anew. It is false when the session has ended.
func (s *session) touch(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.expired {
		return false
	}
	s.record.LastAccessedAt = now // the clock looks at it when it has run down
	return true
}

// expire runs when the idle time may be over, and reports whether it is: a request may have come
// in between, and a session with a call in flight is not idle.
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

// begin registers the calls of one POST, all or none: a duplicate of an id in flight is refused.
func (s *session) begin(calls []*call) *fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.expired {
		return sessionNotFound(reasonNotFound)
	}
	if len(s.calls)+len(calls) > maxInFlight {
		return busy(fiber.StatusTooManyRequests, "too many requests of this session are in flight", time.Second)
	}
	for i, c := range calls {
		if _, taken := s.byID[string(c.id)]; taken {
			s.forget(calls[:i])
			return badRequest(jsonrpc.CodeInvalidRequest, fmt.Sprintf("a request with id %s is already in flight", c.id)).of(c.id)
		}
		s.last++
		c.number, c.session, c.since = s.last, s, s.record.LastAccessedAt
		if c.out.log == nil {
			c.out.log, c.out.stream, c.out.primes = &s.journal, s.last, s.record.ProtocolVersion >= "2025-11-25"
		}
		s.calls[c.number], s.byID[string(c.id)] = c, c.number
	}
	return nil
}

// streamSilent lets the answers of calls that came before then be streams.
func (s *session) streamSilent(then time.Time) {
	var silent []*exchange
	s.mu.Lock()
	for _, c := range s.calls {
		if c.since.Before(then) && !c.out.streamed.Load() {
			silent = append(silent, c.out)
		}
	}
	s.mu.Unlock()
	for _, x := range silent {
		x.beStream()
	}
}

func (s *session) forget(calls []*call) {
	for _, c := range calls {
		delete(s.calls, c.number)
		delete(s.byID, string(c.id))
	}
}

// take ends a call: whoever takes it answers it, and nobody else does.
func (s *session) take(n int64) *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.calls[n]
	if c != nil {
		s.forget([]*call{c})
		s.record.LastAccessedAt = time.Now() // the idle time starts when the last call ends
	}
	return c
}

func (s *session) call(n int64) *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[n]
}

// inFlight finds the SDK's id of a call by the id its client gave it.
func (s *session) inFlight(id json.RawMessage) (int64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, ok := s.byID[string(id)]
	return n, ok
}

// answer completes a call with a whole JSON-RPC response.
func (s *session) answer(n int64, response func(id json.RawMessage) []byte) {
	if c := s.take(n); c != nil {
		c.out.answer(response(c.id))
		s.count(1)
	}
}

// write is where the SDK's messages arrive: responses go to their call, everything else to the
// call it was made for, else to the GET stream.
func (s *session) write(ctx context.Context, msg jsonrpc.Message) error {
	switch m := msg.(type) {
	case *jsonrpc.Response:
		n, _ := m.ID.Raw().(int64)
		s.answer(n, func(id json.RawMessage) []byte {
			if m.Error != nil {
				known := rpcErrorOf(m.Error)
				return errorBody(id, known.Code, known.Message, known.Data)
			}
			return resultBody(id, m.Result)
		})
	case *jsonrpc.Request:
		text, err := jsonrpc.EncodeMessage(m)
		if err != nil {
			return err
		}
		if c := callOf(ctx); c != nil {
			c.out.notify(text)
		} else {
			s.notify(text)
		}
	}
	return nil
}

// notify sends a message on the GET stream, if there is one.
func (s *session) notify(text []byte) {
	s.mu.Lock()
	out := s.outlet
	s.mu.Unlock()
	if out != nil {
		out.push(text)
	}
}

// told sends what an app says by itself. A client that lost its GET stream gets it when it comes back.
func (s *session) told(n rpc.Notification) {
	text := notificationBody(n.Method, n.Params)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.outlet != nil:
		s.outlet.push(text)
	case s.heard:
		s.journal.add(getStream, text)
	}
}

// changed tells the client that a list changed; without a GET stream it is told when it opens one.
func (s *session) changed(kind core.Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.outlet != nil {
		s.outlet.push(listChanged(kind))
	} else if !slices.Contains(s.missed, kind) {
		s.missed = append(s.missed, kind)
	}
}

func listChanged(kind core.Kind) []byte { return notificationBody(changeOf(kind), nil) }

// end closes the session: calls in flight are cancelled and answered, the GET stream ends.
func (s *session) end() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	if s.idle != nil {
		s.idle.Stop()
	}
	numbers := make([]int64, 0, len(s.calls))
	for n := range s.calls {
		numbers = append(numbers, n)
	}
	out := s.outlet
	for id, q := range s.questions {
		delete(s.questions, id)
		close(q.answer)
	}
	s.mu.Unlock()
	s.wire.hangUp()
	for _, n := range numbers {
		s.answer(n, func(id json.RawMessage) []byte { return errorBody(id, codeServer, "the session was closed", nil) })
	}
	if out != nil {
		out.close()
	}
}

// key is how a call's number travels through the SDK to the middleware: in its one pass-through
// field, the HTTP header of the request.
const key = "Ropewalk-Call"

func keyOf(n int64) string { return strconv.FormatInt(n, 10) }
