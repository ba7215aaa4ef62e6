package mcphttp

import (
	"context"
	"errors"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// named is the session that a GET or DELETE names.
func (e *Endpoint) named(c *fiber.Ctx, caller core.Caller) (*session, *fault) {
	id, ok := rawHeader(c, headerSession)
	if !ok || len(id) == 0 {
		return nil, badRequest(codeServer, "this request needs the header Mcp-Session-Id, once")
	}
	return e.session(id, caller)
}

// session finds a live session of the caller and starts its idle time anew.
func (e *Endpoint) session(id []byte, caller core.Caller) (*session, *fault) {
	now := time.Now()
	if s := e.live.find(id); s != nil && s.owned(caller) && s.touch(now) {
		e.ledger.touch(s.wire.id, now)
		return s, nil
	}
	return nil, e.absent(string(id), caller)
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
		e.log.Warn("The session store could not be asked about a session", "error", err)
		return busy(fiber.StatusServiceUnavailable, "the session store cannot be asked; try again", 5*time.Second)
	case !owns(rec, caller):
		return sessionNotFound(reasonNotFound)
	}
	return sessionNotFound(reasonUnavailable)
}

// owns reports whether c may use the session of a record: the same identity in the same workspace.
func owns(rec sessionstore.Record, c core.Caller) bool {
	return rec.Subject == c.Subject && rec.Issuer == c.Issuer && rec.WorkspaceID == c.Workspace.ID
}

// owned reports whether c may use a live session.
func (s *session) owned(c core.Caller) bool {
	return s.owner.Subject == c.Subject && s.owner.Issuer == c.Issuer && s.owner.Workspace.ID == c.Workspace.ID
}
