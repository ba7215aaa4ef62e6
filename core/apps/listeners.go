package apps

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// Notification is a notification from an app that does not belong to a call.
type Notification struct {
	Server string
	// Session is the session it is for, or "" for everyone in the workspace.
	Session string
	// FromPool means that an instance of the session pool sent it. It is then only for Session or, if that is "", only
	// for clients without a session.
	FromPool bool
	// Except lists the sessions that get this notification from their own instance; "" stands for clients without a
	// session.
	Except []string
	rpc.Notification
}

// listeners are the receivers of notifications from the apps of each workspace.
type listeners struct {
	mu  sync.RWMutex
	all map[string]map[*listener]struct{} // by workspace
}

type listener struct{ receive func(Notification) }

// Listen calls receive for each notification from the workspace's apps. receive must not block.
func (l *listeners) Listen(workspace string, receive func(Notification)) (stop func()) {
	one := &listener{receive}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all[workspace] == nil {
		l.all[workspace] = map[*listener]struct{}{}
	}
	l.all[workspace][one] = struct{}{}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.all[workspace], one)
		if len(l.all[workspace]) == 0 {
			delete(l.all, workspace)
		}
	}
}

// Publish calls every listener in the workspace.
func (l *listeners) Publish(workspace string, n Notification) {
	l.mu.RLock()
	receivers := make([]*listener, 0, len(l.all[workspace]))
	for one := range l.all[workspace] {
		receivers = append(receivers, one)
	}
	l.mu.RUnlock()
	for _, one := range receivers {
		one.receive(n)
	}
}

// LevelNames returns MCP's log levels, least severe first (RFC 5424).
func LevelNames() []string {
	return []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
}

// logLevels is the log level of the apps in each workspace: the least severe level that any session there wants.
type logLevels struct {
	mu          sync.Mutex
	byWorkspace map[string]string
}

// Of returns the level of a workspace; "" for none.
func (l *logLevels) Of(workspace string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byWorkspace[workspace]
}

// Set sets the level of a workspace and reports whether it has changed. An unknown level is ignored.
func (l *logLevels) Set(workspace, level string) (changed bool) {
	if !slices.Contains(LevelNames(), level) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	changed = l.byWorkspace[workspace] != level
	l.byWorkspace[workspace] = level
	return changed
}

// Limits on one app's subscribed resources: in total, and per user.
const (
	maxSubscriptions        = 2000
	maxSubscriptionsPerUser = maxSubscriptions / 4
)

// subscriptions counts the subscriptions to each resource of an app, so that the app gets a single subscription per
// resource, and gets it again after a restart.
type subscriptions struct {
	mu        sync.Mutex
	byApp     map[interact.AppRef]map[string]int // by URI, as the app names it
	bySession map[sessionKey]map[string]int      // the same, for the clients that one instance serves
	byUser    map[subscriber]map[string]int
}

// subscriber is a user who subscribes to an app's resources.
type subscriber struct {
	App  interact.AppRef
	User string
}

// sessionKey identifies an instance of the session pool: the instance for one session, or for all stateless clients
// if Session is "".
type sessionKey struct {
	App     interact.AppRef
	Session string
}

func newSubscriptions() *subscriptions {
	return &subscriptions{byApp: map[interact.AppRef]map[string]int{}, bySession: map[sessionKey]map[string]int{}, byUser: map[subscriber]map[string]int{}}
}

// Add counts a user's subscription and reports whether it is the app's first one for this resource.
func (s *subscriptions) Add(k sessionKey, user, uri string) (first bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := subscriber{k.App, user}
	if s.byUser[u][uri] == 0 && len(s.byUser[u]) >= maxSubscriptionsPerUser {
		return false, core.Errorf(core.CodeRateLimited, "you have subscribed to too many resources of app %s: the limit is %d per user; unsubscribe from others first", k.App.Name, maxSubscriptionsPerUser).
			WithRetryAfter(10 * time.Second)
	}
	if s.byApp[k.App][uri] == 0 && len(s.byApp[k.App]) >= maxSubscriptions {
		return false, core.Errorf(core.CodeUnavailable, "%w", link.ErrTooManySubscriptions)
	}
	addCount(s.byUser, u, uri, 1)
	addCount(s.bySession, k, uri, 1)
	return addCount(s.byApp, k.App, uri, 1) == 1, nil
}

// Remove removes a subscription and reports whether it was the last one for the app and for the session.
func (s *subscriptions) Remove(k sessionKey, user, uri string) (lastOfApp, lastOfSession bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bySession[k][uri] == 0 {
		return false, false
	}
	addCount(s.byUser, subscriber{k.App, user}, uri, -1)
	lastOfSession = addCount(s.bySession, k, uri, -1) == 0
	return addCount(s.byApp, k.App, uri, -1) == 0, lastOfSession
}

// addCount changes the count of a URI and removes entries that have reached 0. It returns the new count.
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

// OfApp returns the resources of an app that have subscriptions.
func (s *subscriptions) OfApp(k interact.AppRef) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.byApp[k]))
}

// OfSession returns the resources that the clients of one instance have subscribed to.
func (s *subscriptions) OfSession(k sessionKey) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.bySession[k]))
}
