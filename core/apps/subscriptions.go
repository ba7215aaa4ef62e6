package apps

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/link"
)

// maxSubscriptions bounds the resources of one app that are subscribed to.
const maxSubscriptions = 1000

// subscriptions counts the subscriptions to each resource of an app, so that the app gets one
// subscription per resource, and gets it again after a restart.
type subscriptions struct {
	mu        sync.Mutex
	byApp     map[interact.AppKey]map[string]int // by URI, as the app names it
	bySession map[sessionKey]map[string]int      // the same, of the clients that one instance serves
}

// sessionKey names an instance of the session pool: that of one session, or of all stateless clients
// for "".
type sessionKey struct {
	app     interact.AppKey
	session string
}

func newSubscriptions() *subscriptions {
	return &subscriptions{byApp: map[interact.AppKey]map[string]int{}, bySession: map[sessionKey]map[string]int{}}
}

// add counts one more and reports whether it is the first for the app.
func (s *subscriptions) add(k sessionKey, uri string) (first bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byApp[k.app][uri] == 0 && len(s.byApp[k.app]) >= maxSubscriptions {
		return false, core.Errorf(core.CodeUnavailable, "%w", link.ErrTooManySubscriptions)
	}
	addCount(s.bySession, k, uri, 1)
	return addCount(s.byApp, k.app, uri, 1) == 1, nil
}

// remove counts one less, and reports whether it was the last for the app and for the session.
func (s *subscriptions) remove(k sessionKey, uri string) (lastOfApp, lastOfSession bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bySession[k][uri] == 0 {
		return false, false
	}
	lastOfSession = addCount(s.bySession, k, uri, -1) == 0
	return addCount(s.byApp, k.app, uri, -1) == 0, lastOfSession
}

// addCount changes the count of a URI and removes what has reached 0.
func addCount[K comparable](all map[K]map[string]int, k K, uri string, change int) int {
	if all[k] == nil {
		all[k] = map[string]int{}
	}
	all[k][uri] += change
	n := all[k][uri]
	if n > 0 {
		return n
	}
	if delete(all[k], uri); len(all[k]) == 0 {
		delete(all, k)
	}
	return 0
}

func (s *subscriptions) ofApp(k interact.AppKey) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.byApp[k]))
}

func (s *subscriptions) ofSession(k sessionKey) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.bySession[k]))
}

// subscriber is an instance as far as subscriptions are concerned.
type subscriber interface {
	Subscribe(ctx context.Context, uri string) error
	Unsubscribe(ctx context.Context, uri string) error
}

// Subscribe subscribes to one resource, named as its app names it, for a session (interact.Client), or
// "" for a client without one. Listen receives the updates until Unsubscribe was called as often. The
// app gets the subscription again after a restart, and so does the instance that it has for the
// session. The errors are those of Call.
func (m *Manager) Subscribe(ctx context.Context, workspace, server, session, uri string) error {
	a, err := m.find(workspace, server)
	if err != nil {
		return err
	}
	k := sessionKey{a.key, session}
	first, err := m.subscriptions.add(k, uri)
	if err != nil {
		return err
	}
	if first {
		err = a.subscribeShared(ctx, "resources/subscribe", uri, subscriber.Subscribe)
	}
	if accepted := a.subscribeSession(ctx, session, uri, subscriber.Subscribe); err != nil && !accepted {
		m.subscriptions.remove(k, uri)
		return err
	}
	return nil
}

// Unsubscribe is the opposite of one Subscribe. It does nothing for an app that does not run.
func (m *Manager) Unsubscribe(ctx context.Context, workspace, server, session, uri string) error {
	k := sessionKey{interact.AppKey{Workspace: workspace, Name: server}, session}
	lastOfApp, lastOfSession := m.subscriptions.remove(k, uri)
	a, err := m.find(workspace, server)
	if err != nil {
		return nil //nolint:nilerr // an app that is gone sends no updates
	}
	if lastOfSession {
		a.subscribeSession(ctx, session, uri, subscriber.Unsubscribe)
	}
	if !lastOfApp || a.current() == nil {
		return nil
	}
	return a.subscribeShared(ctx, "resources/unsubscribe", uri, subscriber.Unsubscribe)
}

// subscribeSession changes a subscription of the instance that the app has for a session, and reports
// whether that accepted it. An instance that is starting is waited for: it may have read the
// subscriptions too early.
func (a *app) subscribeSession(ctx context.Context, session, uri string, change func(subscriber, context.Context, string) error) (accepted bool) {
	limit, cancel := context.WithTimeout(ctx, appTimeout)
	defer cancel()
	in := a.dialog.AwaitInstance(limit, session)
	if in == nil {
		return false
	}
	if err := change(in, limit, uri); err != nil {
		a.log.Debug("instance of a session did not accept a subscription", "uri", uri, "error", err)
		return false
	}
	return true
}

func (a *app) subscribeShared(ctx context.Context, method, uri string, change func(subscriber, context.Context, string) error) error {
	in, err := a.queue(ctx)
	if err != nil {
		return err
	}
	defer a.ReleaseSlot()
	limit, cancel := context.WithTimeoutCause(ctx, a.manager.o.CallTimeout, interact.ErrTimeout)
	defer cancel()
	if err := change(in, limit, uri); err != nil {
		return a.CallError(ctx, limit, in, method, err)
	}
	return nil
}

// subscribeAgain subscribes an instance that has started to resources.
func (a *app) subscribeAgain(ctx context.Context, in subscriber, uris []string) {
	for _, uri := range uris {
		limit, cancel := context.WithTimeout(ctx, appTimeout)
		err := in.Subscribe(limit, uri)
		cancel()
		if err != nil && ctx.Err() == nil {
			a.log.Debug("app that has started did not accept a subscription", "uri", uri, "error", err)
		}
	}
}
