package mcphttp

import (
	"context"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/stream"
)

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
	out := s.claim()
	if out == nil {
		return (&fault{status: fiber.StatusConflict, code: codeServer, message: "this session's event stream is already open"}).send(c)
	}
	c.Set(fiber.HeaderConnection, "close") // DELETE ends the stream of a client that goes on
	err := e.o.Streams.Open(c, stream.Standing, func(ctx context.Context, w *stream.Writer) {
		defer s.leave(out)
		if s.start(out) && w.Comment() == nil {
			out.copyTo(ctx, w)
		}
	})
	if err != nil {
		s.leave(out)
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
