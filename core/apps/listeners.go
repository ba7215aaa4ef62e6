package apps

import (
	"maps"
	"slices"
	"sync"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// Notification is a notification of an app that belongs to no call.
type Notification struct {
	Server string
	// Session is the session that it is for, "" for everyone in the workspace.
	Session string
	// Apart says that an instance of the session pool sent it: it is for Session alone or, when that is
	// "", for clients without a session.
	Apart bool
	// Without are the sessions that get this notification from an instance of their own, "" for clients
	// without a session.
	Without []string
	rpc.Notification
}

// listeners are those who receive the notifications of a workspace's apps.
type listeners struct {
	mu  sync.RWMutex
	all map[string]map[*listener]struct{} // by workspace
}

type listener struct{ receive func(Notification) }

// newListeners returns listeners without anyone.
func newListeners() *listeners { return &listeners{all: map[string]map[*listener]struct{}{}} }

// Listen calls receive with each notification of the workspace's apps. receive must not wait.
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

// Publish calls everyone who listens in the workspace.
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

// LevelNames returns the levels of log messages, least severe first (RFC 5424, by their names in MCP).
func LevelNames() []string {
	return []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
}

// logLevels is the log level of the apps of each workspace: the least severe that a session there wants.
type logLevels struct {
	mu          sync.Mutex
	byWorkspace map[string]string
}

// newLogLevels returns logLevels without any level.
func newLogLevels() *logLevels { return &logLevels{byWorkspace: map[string]string{}} }

// Of returns the level of a workspace, "" for none.
func (l *logLevels) Of(workspace string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byWorkspace[workspace]
}

// Set sets the level of a workspace and reports whether that is a change. A name that is no level
// changes nothing.
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
	App     interact.AppKey
	Session string
}

// newSubscriptions returns subscriptions to nothing.
func newSubscriptions() *subscriptions {
	return &subscriptions{byApp: map[interact.AppKey]map[string]int{}, bySession: map[sessionKey]map[string]int{}}
}

// Add counts one more and reports whether it is the first for the app.
func (s *subscriptions) Add(k sessionKey, uri string) (first bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byApp[k.App][uri] == 0 && len(s.byApp[k.App]) >= maxSubscriptions {
		return false, core.Errorf(core.CodeUnavailable, "%w", link.ErrTooManySubscriptions)
	}
	addCount(s.bySession, k, uri, 1)
	return addCount(s.byApp, k.App, uri, 1) == 1, nil
}

// Remove counts one less, and reports whether it was the last for the app and for the session.
func (s *subscriptions) Remove(k sessionKey, uri string) (lastOfApp, lastOfSession bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bySession[k][uri] == 0 {
		return false, false
	}
	lastOfSession = addCount(s.bySession, k, uri, -1) == 0
	return addCount(s.byApp, k.App, uri, -1) == 0, lastOfSession
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

// OfApp returns the resources of an app that are subscribed to.
func (s *subscriptions) OfApp(k interact.AppKey) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.byApp[k]))
}

// OfSession returns the resources that the clients of one instance are subscribed to.
func (s *subscriptions) OfSession(k sessionKey) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.bySession[k]))
}
