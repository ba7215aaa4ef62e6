package mcphttp

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/webguard"
)

// openStreams holds the long-lived streams and the calls without a session, so that they can be ended.
type openStreams struct {
	mu  sync.Mutex
	all map[*openStream]struct{}
}

type openStream struct {
	caller core.Caller
	end    context.CancelFunc
	follow func(core.Caller) // receives the caller's current rights
}

// add registers a stream until remove is called.
func (o *openStreams) add(s *openStream) (remove func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil {
		o.all = make(map[*openStream]struct{})
	}
	o.all[s] = struct{}{}
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.all, s)
	}
}

func (o *openStreams) of(userID string) []*openStream {
	o.mu.Lock()
	defer o.mu.Unlock()
	var found []*openStream
	for s := range o.all {
		if userID == "" || s.caller.User.ID == userID {
			found = append(found, s)
		}
	}
	return found
}

// EndRevoked ends the sessions, streams and tasks of a user, or of all users if userID is "", that access no longer
// allows because the user, the API key or the membership is gone. The others continue with the current rights. If
// access cannot be checked, they continue unchanged.
func (e *Endpoint) EndRevoked(ctx context.Context, userID string) {
	now := time.Now()
	e.changed.Store(&now) // set before the sessions are listed, because later requests check it
	e.endRevoked(ctx, userID)
}

// recheck ends the caller's sessions and streams if access was revoked while a request was handled. The caller was
// authenticated before the revocation, and EndRevoked could not find a session or stream that the request had not
// opened yet.
func (e *Endpoint) recheck(caller core.Caller, began time.Time) {
	if !e.changedSince(began) {
		return
	}
	ctx, cancel := context.WithTimeout(e.root, gateTimeout)
	defer cancel()
	e.endRevoked(ctx, caller.User.ID)
}

// changedSince reports whether any user's access has changed since a request started.
func (e *Endpoint) changedSince(began time.Time) bool {
	changed := e.changed.Load()
	return changed != nil && !began.After(*changed)
}

func (e *Endpoint) endRevoked(ctx context.Context, userID string) {
	for _, s := range e.live.All() {
		if userID != "" && s.Owner.User.ID != userID || !e.revoked(ctx, s.Owner, func(now core.Caller) { e.hub.follow(now, s.Tools, s) }) {
			continue
		}
		e.writer.Drop(s.ID) // before the session is removed here, so that nothing can take it over again
		if e.live.Remove(s) {
			e.closeSession(s, sessionClosed)
			e.writer.Remove(ctx, s.ID)
			e.log.Info("session ended: access was revoked", "user", s.Owner.User.ID, "workspace", s.Owner.Workspace.ID)
		}
	}
	for _, s := range e.standing.of(userID) {
		if e.revoked(ctx, s.caller, s.follow) {
			s.end()
		}
	}
	e.o.Tools.EndTasks(userID, func(c core.Caller) bool { return e.revoked(ctx, c, func(core.Caller) {}) })
}

// revoked reports whether a caller has lost access, and otherwise passes the current rights to follow if they are
// known.
func (e *Endpoint) revoked(ctx context.Context, c core.Caller, follow func(core.Caller)) bool {
	now, err := e.o.Access.Current(ctx, c)
	if err == nil {
		follow(now)
	}
	code := core.CodeOf(err)
	return code == core.CodeUnauthenticated || code == core.CodeWorkspaceDenied
}

// identifyInterval is how often the caller of a long-lived stream is identified again. Its token may have expired, or
// the identity provider may no longer accept it.
const identifyInterval = 4 * time.Minute

// identification returns a function that identifies the caller of a request again, after the request is gone. It
// returns nil in dev mode. A token that is bound to a key is rejected without a proof (RFC 9449 section 7.1). The proof
// in the request was valid only for that request, so the client opens another stream with a new proof.
func (e *Endpoint) identification(c *fiber.Ctx) func(context.Context) error {
	if e.o.Access.Dev() {
		return nil
	}
	credentials, _ := single(c, fiber.HeaderAuthorization)
	token := strings.Clone(cmp.Or(webguard.Bearer(credentials), webguard.DPoP(credentials)))
	resource, _ := resourceOf(c)
	return func(ctx context.Context) error {
		_, err := e.o.Access.MCP(ctx, token, resource)
		return err
	}
}

// identifyAgain checks the caller at intervals, by calling again, until ctx ends or stop is called. If the caller is no
// longer accepted, it calls end.
func (e *Endpoint) identifyAgain(ctx context.Context, again func(context.Context) error, end func()) (stop func()) {
	if again == nil {
		return func() {}
	}
	var timer *time.Timer
	ready := make(chan struct{})
	timer = time.AfterFunc(e.o.identifyEvery, func() {
		<-ready
		if ctx.Err() != nil {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, gateTimeout)
		defer cancel()
		if core.CodeOf(again(ctx)) == core.CodeUnauthenticated {
			e.log.Info("stream ended: its token is no longer accepted, or needs a new proof of possession")
			end()
			return
		}
		timer.Reset(e.o.identifyEvery)
	})
	close(ready)
	return func() { timer.Stop() }
}
