package mcphttp

import (
	"context"
	"errors"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/stream"
	"github.com/ropewalk/ropewalk/plugins"
)

// takeover is how long a second GET waits for the first one's connection to be seen closed before
// it is refused, and how long a stream may take to start before its place is free again.
const takeover = 250 * time.Millisecond

// get opens the session's stream of server messages; a session has one.
func (e *Endpoint) get(c *fiber.Ctx, caller core.Caller) error {
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
	err := e.streams.Open(c, stream.Standing, func(ctx context.Context, w *stream.Writer) {
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

// remove ends a session at its client's wish.
func (e *Endpoint) remove(c *fiber.Ctx, caller core.Caller) error {
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

// named is the session that a GET or DELETE names.
func (e *Endpoint) named(c *fiber.Ctx, caller core.Caller) (*session, *fault) {
	id, ok := single(c, headerSession)
	if !ok || id == "" {
		return nil, badRequest(codeServer, "this request needs the header Mcp-Session-Id, once")
	}
	return e.session(id, caller)
}

// session finds a live session of the caller and starts its idle time anew.
func (e *Endpoint) session(id string, caller core.Caller) (*session, *fault) {
	now := time.Now()
	if s := e.live.find(id); s != nil && s.belongsTo(caller) && s.touch(now, e.o.SessionTTL) {
		e.ledger.touch(id, now)
		return s, nil
	}
	return nil, e.absent(id, caller)
}

// absent says why a session is not to be had here (spec 4.10 rule 6). Another's session takes the
// same way as one that never was, the question to the store included.
func (e *Endpoint) absent(id string, caller core.Caller) *fault {
	if len(id) > 128 {
		return sessionNotFound(reasonNotFound)
	}
	ctx, cancel := context.WithTimeout(e.root, storeTimeout)
	defer cancel()
	rec, err := e.ledger.find(ctx, id)
	switch {
	case errors.Is(err, plugins.ErrNotFound):
		return sessionNotFound(reasonNotFound)
	case err != nil:
		e.log.Warn("The session store could not be asked about a session.", "error", err)
		return busy(fiber.StatusServiceUnavailable, "the session store cannot be asked; try again", 5*time.Second)
	case !owns(rec, caller):
		return sessionNotFound(reasonNotFound)
	}
	return sessionNotFound(reasonUnavailable)
}
