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

// maxSessionID is the length in bytes of the longest session ID that is looked up in the store.
const maxSessionID = 128

// named returns the session that a GET or DELETE refers to.
func (e *Endpoint) named(c *fiber.Ctx, caller core.Caller) (*session, *fault) {
	id, ok := rawHeader(c, headerSession)
	if !ok || len(id) == 0 {
		return nil, badRequest(codeServer, "this request needs exactly one Mcp-Session-Id header")
	}
	return e.session(c.UserContext(), id, caller)
}

// session finds a session of the caller and restarts its idle time. It takes over the session of another server that
// has stopped or gives the session up.
func (e *Endpoint) session(ctx context.Context, id []byte, caller core.Caller) (*session, *fault) {
	s := e.here(id, caller)
	if s == nil {
		taken, f := e.absent(ctx, string(id), caller)
		if f != nil {
			return nil, f
		}
		s = taken
	}
	e.hub.follow(caller, s.Tools, s)
	return s, nil
}

// here returns the caller's live session with an ID, or nil if there is none.
func (e *Endpoint) here(id []byte, caller core.Caller) *session {
	now := time.Now()
	if s := e.live.Find(id); s != nil && s.OwnedBy(caller) && (e.covered(s, now) || e.confirm(s)) && s.Touch(now) {
		e.writer.Touch(s.ID, now)
		return s
	}
	return nil
}

// absent takes over a session that this server does not have. If that is impossible, it returns a fault with the
// reason. Another caller's session is handled exactly like one that never existed, including the lookup in the store.
func (e *Endpoint) absent(ctx context.Context, id string, caller core.Caller) (*session, *fault) {
	if len(id) > maxSessionID {
		return nil, sessionNotFound(reasonNotFound)
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
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

// recorded returns the stored record of one of the caller's sessions.
func (e *Endpoint) recorded(ctx context.Context, id string, caller core.Caller) (sessionstore.Record, *fault) {
	rec, err := e.writer.Find(ctx, id)
	switch {
	case errors.Is(err, plugins.ErrNotFound):
		return rec, sessionNotFound(reasonNotFound)
	case err != nil:
		return rec, e.storeUnavailable(err)
	case !owns(rec, caller):
		return rec, sessionNotFound(reasonNotFound)
	}
	return rec, nil
}

func (e *Endpoint) storeUnavailable(err error) *fault {
	e.log.Warn("could not look up a session, because the session store is unavailable", "error", err)
	return retryLater(fiber.StatusServiceUnavailable, "the session store is unavailable; try again", 5*time.Second)
}

// owns reports whether c may use the session of a record: the same person or API key in the same workspace and view. A
// record without a state does not contain the person, only the identity that opened the session.
func owns(rec sessionstore.Record, c core.Caller) bool {
	user, view := openedBy(rec)
	if rec.WorkspaceID != c.Workspace.ID || view != c.View {
		return false
	}
	return rec.Subject == c.Subject && rec.Issuer == c.Issuer ||
		rec.Issuer != core.IssuerKey && c.Issuer != core.IssuerKey && user == c.User.ID
}

// A session belongs to the server whose lease its record contains. The code below takes over the sessions of servers
// that have stopped, gives up sessions that another server asks for, and ends sessions that were lost to another
// server.

const (
	takeOverTimeout = 3 * time.Second       // how long the other server may take to stop or to give up the session
	takeOverPoll    = 50 * time.Millisecond // how often the record is read in the meantime
)

// takeOver moves a session of the caller to this server.
func (e *Endpoint) takeOver(ctx context.Context, id string, caller core.Caller) (*session, *fault) {
	ctx, cancel := context.WithTimeout(ctx, takeOverTimeout)
	defer cancel()
	unlock, err := e.moving.Lock(ctx, id)
	if err != nil {
		return nil, sessionNotFound(reasonUnavailable)
	}
	defer unlock()
	for {
		if s := e.live.Find([]byte(id)); s != nil { // another request was faster, or the session is just ending
			if !s.OwnedBy(caller) || !s.Touch(time.Now()) {
				return nil, sessionNotFound(reasonNotFound)
			}
			return s, nil
		}
		rec, f := e.recorded(ctx, id, caller)
		if f != nil {
			return nil, f
		}
		lease, free, err := e.isFree(ctx, rec)
		if err != nil {
			return nil, e.storeUnavailable(err)
		}
		if free {
			if s, f := e.adopt(ctx, rec, lease, caller); s != nil || f != nil {
				return s, f
			}
		}
		if !wait(ctx, takeOverPoll) {
			return nil, sessionNotFound(reasonUnavailable)
		}
	}
}

// isFree reports whether no live server has a session, and returns this server's lease. If a live server has the
// session, isFree asks it to give the session up.
func (e *Endpoint) isFree(ctx context.Context, rec sessionstore.Record) (lease string, free bool, err error) {
	if lease, err = e.lease.Acquire(ctx); err != nil || rec.Owner == "" || rec.Owner == lease {
		return lease, err == nil, err
	}
	alive, err := e.lease.Ask(ctx, rec.Owner, rec.ID)
	return lease, err == nil && !alive, err
}

// adopt opens a session from its record. It returns nil and no fault if another server was faster.
func (e *Endpoint) adopt(ctx context.Context, rec sessionstore.Record, lease string, caller core.Caller) (*session, *fault) {
	s, level, ok := restoreSession(caller, rec)
	if !ok {
		return nil, sessionNotFound(reasonNotFound)
	}
	if err := e.live.Reserve(caller.User.ID); err != nil {
		return nil, refusedBySession(err, "too many sessions are open on this server; close one or try again later")
	}
	defer e.live.EndCalls(1)
	e.attach(s)
	if level != "" {
		_ = s.Tools.SetLevel(ctx, level) // the level was valid when the client set it
	}
	s.Touch(time.Now())
	next, added := s.RecordFor(lease), false
	s.Keep(next)
	replaced, err := e.writer.Replace(ctx, next, rec.Owner, func() { added = e.live.Add(s) })
	if added {
		e.log.Info("session taken over", "workspace", caller.Workspace.ID, "user", caller.User.ID)
		return s, nil
	}
	e.closeSession(s, sessionClosed)
	e.live.Release(caller.User.ID)
	switch {
	case err != nil && !errors.Is(err, plugins.ErrNotFound):
		return nil, e.storeUnavailable(err)
	case replaced:
		return nil, shuttingDown()
	}
	return nil, nil
}

// covered reports whether this server is known to have a session.
func (e *Endpoint) covered(s *session, now time.Time) bool {
	return !e.writer.Replaces() || e.lease.Covers(s.Lease(), now)
}

// confirm reclaims a session whose lease was not renewed in time. If another server has the session, confirm ends it
// here and returns false. While the store is unavailable, the session continues.
func (e *Endpoint) confirm(s *session) bool {
	ctx, cancel := context.WithTimeout(e.root, storeTimeout)
	defer cancel()
	unlock, err := e.moving.Lock(ctx, s.ID)
	if err != nil {
		return false
	}
	defer unlock()
	lease, err := e.lease.Acquire(ctx)
	owner := s.Lease()
	if err != nil || lease == "" || owner == lease {
		return true
	}
	next := s.RecordFor(lease)
	keep := func() { s.Keep(next) }
	replaced, err := e.writer.Replace(ctx, next, owner, keep)
	if errors.Is(err, plugins.ErrNotFound) && e.live.Find([]byte(s.ID)) == s { // the store has lost its data
		replaced, err = true, e.writer.Put(ctx, next, keep)
	}
	if replaced || err != nil {
		return true
	}
	if e.live.Remove(s) {
		e.closeSession(s, sessionMoved)
		e.log.Info("session lost to another server", "workspace", s.Owner.Workspace.ID, "user", s.Owner.User.ID)
	}
	return false
}

// giveUp releases a session that another server asks for. If a call is in flight, giveUp does nothing, and the other
// server asks again.
func (e *Endpoint) giveUp(ctx context.Context, id, lease string) {
	unlock, err := e.moving.Lock(ctx, id)
	if err != nil {
		return
	}
	defer unlock()
	rec, err := e.writer.Find(ctx, id)
	if err != nil || rec.Owner != lease {
		return
	}
	if s := e.live.Find([]byte(id)); s != nil {
		if len(s.Calls()) > 0 || !e.live.Remove(s) {
			return
		}
		e.closeSession(s, sessionMoved)
		rec = s.RecordFor(lease)
	}
	if _, err := e.writer.GiveUp(ctx, rec, lease); err != nil {
		e.log.Warn("could not hand over a session, because the session store is unavailable", "error", err)
		return
	}
	e.log.Info("session handed over to another server", "workspace", rec.WorkspaceID)
}

// keepLease renews the lease at intervals, as long as there are sessions, until the endpoint is closed.
func (e *Endpoint) keepLease() {
	tick := time.NewTicker(renewInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if e.writer.Replaces() && e.Sessions() > 0 {
				e.renewLease(e.root)
			}
		case <-e.root.Done():
			return
		}
	}
}

// renewLease renews the lease, confirms the sessions that it does not cover yet, and gives up those that other servers
// ask for.
func (e *Endpoint) renewLease(ctx context.Context) {
	lease, wanted, err := e.lease.Renew(ctx)
	if err != nil || lease == "" {
		return // the writer logs it
	}
	for _, s := range e.live.All() {
		if s.Lease() != lease {
			e.confirm(s)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	for _, id := range wanted {
		e.giveUp(ctx, id, lease)
	}
}

// wait waits for d. It returns false if ctx ends first.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
