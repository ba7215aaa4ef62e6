package mcphttp

import (
	"context"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/mcphttp/sse"
	"github.com/ropewalk/ropewalk/core/stream"
	"github.com/ropewalk/ropewalk/core/webguard"
)

// headerLastEvent is the header with the ID of the last event that a client received on a stream that broke.
const headerLastEvent = "Last-Event-ID"

// get opens the session's stream of server messages. A session has at most one.
func (e *Endpoint) get(c *fiber.Ctx, caller core.Caller) error {
	if namesStateless(c) {
		return methodGone(c)
	}
	if !webguard.Accepts(&c.Request().Header, "text/event-stream") {
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
	if number != sse.GETStream {
		return e.resume(c, s, number, seen)
	}
	return e.listenIn(c, s, seen)
}

// lastEvent returns the last event that a client received on a broken stream: the stream and the event number. If the
// client specifies none, it returns the GET stream and -1.
func lastEvent(c *fiber.Ctx) (of, number int64, f *fault) {
	id, once := rawHeader(c, headerLastEvent)
	if id == nil {
		return sse.GETStream, -1, nil
	}
	of, number, ok := sse.ParseEventID(string(id))
	if !ok || !once {
		f = badRequest(codeServer, "Last-Event-ID is not the ID of an event that this server sent")
	}
	return of, number, f
}

// listenIn opens the session's GET stream, replacing any that is open.
func (e *Endpoint) listenIn(c *fiber.Ctx, s *session, seen int64) error {
	out := s.OpenStream(seen)
	first, again := s.FirstEventID(seen), e.identification(c)
	c.Set(fiber.HeaderConnection, "close") // the stream lasts until DELETE, and nothing follows it on its connection
	err := e.o.Streams.Open(c, stream.Standing, func(ctx context.Context, w *stream.Writer) {
		defer s.CloseStream(out)
		ctx, end := context.WithCancel(ctx)
		defer end()
		defer e.identifyAgain(ctx, again, end)()
		if begin(w, first) == nil {
			out.CopyTo(ctx, w)
		}
	})
	if err != nil {
		s.CloseStream(out)
		return e.denied(err).send(c)
	}
	return nil
}

// begin sends the first bytes of a stream. In revisions that support it, they are an event without a message, whose ID
// lets the client resume.
func begin(w *stream.Writer, id string) error {
	if id == "" {
		return w.Comment()
	}
	return w.EventWithID(id, "", nil)
}

// resume continues the stream of a POST whose connection broke, up to its last response.
func (e *Endpoint) resume(c *fiber.Ctx, s *session, number, seen int64) error {
	rest := sse.NewQueue()
	if !s.Journal.Resume(number, seen, rest) {
		return badRequest(codeServer, "Last-Event-ID refers to an event that is no longer available; send the request again").send(c)
	}
	err := e.o.Streams.Open(c, stream.Response, func(ctx context.Context, w *stream.Writer) {
		defer s.Journal.Release(number, rest)
		rest.CopyTo(ctx, w)
	})
	if err != nil {
		s.Journal.Release(number, rest)
		return e.denied(err).send(c)
	}
	return nil
}

// delete ends a session at its client's request.
func (e *Endpoint) delete(c *fiber.Ctx, caller core.Caller) error {
	if namesStateless(c) {
		return methodGone(c)
	}
	s, f := e.named(c, caller)
	if f != nil {
		return f.send(c)
	}
	e.writer.Drop(s.ID) // before the session is removed here, so that nothing can take it over again
	if !e.live.Remove(s) {
		return sessionNotFound(reasonNotFound).send(c)
	}
	e.closeSession(s, sessionClosed)
	ctx, cancel := context.WithTimeout(e.root, storeTimeout)
	defer cancel()
	e.writer.Remove(ctx, s.ID)
	c.Status(fiber.StatusOK)
	return nil
}
