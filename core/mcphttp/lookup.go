package mcphttp

import (
	"context"
	"errors"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/mcphttp/session"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// maxSessionID is the longest session id that the store is asked about, bytes.
const maxSessionID = 128

// named is the session that a GET or DELETE names.
func (e *Endpoint) named(c *fiber.Ctx, caller core.Caller) (*session.Session, *fault) {
	id, ok := rawHeader(c, headerSession)
	if !ok || len(id) == 0 {
		return nil, badRequest(codeServer, "this request needs the header Mcp-Session-Id, once")
	}
	return e.session(e.within(c), id, caller)
}

// session finds a live session of the caller and restarts its idle time.
func (e *Endpoint) session(ctx context.Context, id []byte, caller core.Caller) (*session.Session, *fault) {
	now := time.Now()
	if s := e.live.Find(id); s != nil && s.OwnedBy(caller) && s.Touch(now) {
		e.writer.Touch(s.ID, now)
		return s, nil
	}
	return nil, e.absent(ctx, string(id), caller)
}

// absent says why a session is not to be had here. A session of another caller takes the same way as
// one that never was, the question to the store included.
func (e *Endpoint) absent(ctx context.Context, id string, caller core.Caller) *fault {
	if len(id) > maxSessionID {
		return sessionNotFound(reasonNotFound)
	}
	ctx, cancel := context.WithTimeout(ctx, session.StoreTimeout)
	defer cancel()
	rec, err := e.writer.Find(ctx, id)
	switch {
	case errors.Is(err, plugins.ErrNotFound):
		return sessionNotFound(reasonNotFound)
	case err != nil:
		e.log.Warn("session not looked up: the session store is unavailable", "error", err)
		return retryLater(fiber.StatusServiceUnavailable, "the session store is unavailable; try again", 5*time.Second)
	case !owns(rec, caller):
		return sessionNotFound(reasonNotFound)
	}
	return sessionNotFound(reasonUnavailable)
}

// owns reports whether c may use the session of a record: the same identity in the same workspace.
func owns(rec sessionstore.Record, c core.Caller) bool {
	return rec.Subject == c.Subject && rec.Issuer == c.Issuer && rec.WorkspaceID == c.Workspace.ID
}
