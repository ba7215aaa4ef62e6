package mcphttp

import (
	"context"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/stream"
)

// headerLastEvent is what a client got last of a stream that broke.
const headerLastEvent = "Last-Event-ID"

// takeover is how long a second GET waits for the first one's connection to be seen closed before
// it is refused, and how long a stream may take to start before its place is free again.
const takeover = 250 * time.Millisecond

// get opens the session's stream of server messages; a session has one.
func (e *Endpoint) get(c *fiber.Ctx, caller core.Caller) error {
	if namesModern(c) {
		return methodGone(c)
	}
	if !accepts(c, "text/event-stream") {
		return (&fault{status: fiber.StatusNotAcceptable, code: codeServer, message: "Accept must allow text/event-stream"}).send(c)
	}
	s, f := e.named(c, caller)
	if f == nil {
		f = checkProtocol(c)
	}
	if f != nil {
		return f.send(c)
	}
	number, seen, f := lastEvent(c)
	if f != nil {
		return f.send(c)
	}
	if number != getStream {
		return e.resume(c, s, number, seen)
	}
	return e.listenIn(c, s, seen)
}

// lastEvent is what the client of a broken stream got last: of which stream, and which event. It is
// the GET stream's and -1 when the client names none.
func lastEvent(c *fiber.Ctx) (of, number int64, f *fault) {
	id, ok := single(c, headerLastEvent)
	if ok && id == "" {
		return getStream, -1, nil
	}
	if of, number, ok = readEventID(id); !ok {
		f = badRequest(codeServer, "Last-Event-ID names no event that this server sent")
	}
	return of, number, f
}

// listenIn opens the session's GET stream.
func (e *Endpoint) listenIn(c *fiber.Ctx, s *session, seen int64) error {
	out := s.claim(seen)
	if out == nil {
		return (&fault{status: fiber.StatusConflict, code: codeServer, message: "this session's event stream is already open"}).send(c)
	}
	first := ""
	if s.snapshot().ProtocolVersion >= "2025-11-25" {
		first = eventID(getStream, max(seen, 0))
		if seen < 0 {
			first = eventID(getStream, s.journal.newest())
		}
	}
	c.Set(fiber.HeaderConnection, "close") // DELETE ends the stream of a client that goes on
	err := e.o.Streams.Open(c, stream.Standing, func(ctx context.Context, w *stream.Writer) {
		defer s.leave(out)
		if s.start(out) && begin(w, first) == nil {
			out.copyTo(ctx, w)
		}
	})
	if err != nil {
		s.leave(out)
		return e.denied(err).send(c)
	}
	return nil
}

// begin sends the first bytes of a stream. Where the revision has it, they are an event without a
// message, from whose id on the client can resume.
func begin(w *stream.Writer, id string) error {
	if id == "" {
		return w.Comment()
	}
	return w.EventWithID(id, "", nil)
}

// resume goes on with the stream of a POST whose connection broke, up to its last response.
func (e *Endpoint) resume(c *fiber.Ctx, s *session, number, seen int64) error {
	rest := newQueue()
	rest.stream = number
	if !s.journal.resume(number, seen, rest) {
		return badRequest(codeServer, "Last-Event-ID names an event that is no longer kept; send the request again").send(c)
	}
	err := e.o.Streams.Open(c, stream.Answer, func(ctx context.Context, w *stream.Writer) {
		defer s.journal.leave(number, rest)
		rest.copyTo(ctx, w)
	})
	if err != nil {
		s.journal.leave(number, rest)
		return e.denied(err).send(c)
	}
	return nil
}

// delete ends a session at its client's wish.
func (e *Endpoint) delete(c *fiber.Ctx, caller core.Caller) error {
	if namesModern(c) {
		return methodGone(c)
	}
	s, f := e.named(c, caller)
	if f == nil && !e.live.remove(s) {
		f = sessionNotFound(reasonNotFound)
	}
	if f != nil {
		return f.send(c)
	}
	e.finish(s)
	ctx, cancel := context.WithTimeout(e.root, storeTimeout)
	defer cancel()
	e.ledger.remove(ctx, s.wire.id)
	c.Status(fiber.StatusOK)
	return nil
}
