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

// maxSessionID is the length in bytes of the longest session ID that is looked up in the store.
const maxSessionID = 128

// named returns the session that a GET or DELETE names.
func (e *Endpoint) named(c *fiber.Ctx, caller core.Caller) (*session.Session, *fault) {
	id, ok := rawHeader(c, headerSession)
	if !ok || len(id) == 0 {
		return nil, badRequest(codeServer, "this request needs exactly one Mcp-Session-Id header")
	}
	return e.session(c.UserContext(), id, caller)
}

// session finds a session of the caller and restarts its idle time. It takes over a session of another server that has
// ended or gives the session up.
func (e *Endpoint) session(ctx context.Context, id []byte, caller core.Caller) (*session.Session, *fault) {
	if s := e.here(id, caller); s != nil {
		return s, nil
	}
	return e.absent(ctx, string(id), caller)
}

// here returns the caller's live session with an ID, or nil when there is none.
func (e *Endpoint) here(id []byte, caller core.Caller) *session.Session {
	now := time.Now()
	if s := e.live.Find(id); s != nil && s.OwnedBy(caller) && (e.covered(s, now) || e.confirm(s)) && s.Touch(now) {
		e.writer.Touch(s.ID, now)
		return s
	}
	return nil
}

// absent takes over a session that is not here, or returns a fault that says why it cannot. Another caller's session is
// handled exactly like one that never existed, including the lookup in the store.
func (e *Endpoint) absent(ctx context.Context, id string, caller core.Caller) (*session.Session, *fault) {
	if len(id) > maxSessionID {
		return nil, sessionNotFound(reasonNotFound)
	}
	ctx, cancel := context.WithTimeout(ctx, session.StoreTimeout)
	defer cancel()
	rec, f := e.recorded(ctx, id, caller)
	switch {
	case f != nil:
		return nil, f
	case !e.writer.Replaces() || rec.State == "":
		return nil, sessionNotFound(reasonUnavailable)
	}
	return e.takeOver(ctx, id, caller)
}

// recorded returns the stored record of a session of the caller.
func (e *Endpoint) recorded(ctx context.Context, id string, caller core.Caller) (sessionstore.Record, *fault) {
	rec, err := e.writer.Find(ctx, id)
	switch {
	case errors.Is(err, plugins.ErrNotFound):
		return rec, sessionNotFound(reasonNotFound)
	case err != nil:
		return rec, e.storeAway(err)
	case !owns(rec, caller):
		return rec, sessionNotFound(reasonNotFound)
	}
	return rec, nil
}

func (e *Endpoint) storeAway(err error) *fault {
	e.log.Warn("could not look up a session: the session store is unavailable", "error", err)
	return retryLater(fiber.StatusServiceUnavailable, "the session store is unavailable; try again", 5*time.Second)
}

// owns reports whether c may use the session of a record: the same person or API key in the same workspace and view. A
// record without a state names only one of the person's identities.
func owns(rec sessionstore.Record, c core.Caller) bool {
	user, view := session.OpenedBy(rec)
	if rec.WorkspaceID != c.Workspace.ID || view != c.View {
		return false
	}
	return rec.Subject == c.Subject && rec.Issuer == c.Issuer ||
		rec.Issuer != core.IssuerKey && c.Issuer != core.IssuerKey && user == c.User.ID
}
