package notify

import (
	"maps"
	"slices"
	"sync"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/link"
)

// maxSubscriptions bounds the resources of one app that are subscribed to.
const maxSubscriptions = 1000

// Subscriptions counts the subscriptions to each resource of an app, so that the app gets one
// subscription per resource, and gets it again after a restart.
type Subscriptions struct {
	mu        sync.Mutex
	byApp     map[interact.AppKey]map[string]int // by URI, as the app names it
	bySession map[SessionKey]map[string]int      // the same, of the clients that one instance serves
}

// SessionKey names an instance of the session pool: that of one session, or of all stateless clients
// for "".
type SessionKey struct {
	App     interact.AppKey
	Session string
}

// NewSubscriptions returns Subscriptions to nothing.
func NewSubscriptions() *Subscriptions {
	return &Subscriptions{byApp: map[interact.AppKey]map[string]int{}, bySession: map[SessionKey]map[string]int{}}
}

// Add counts one more and reports whether it is the first for the app.
func (s *Subscriptions) Add(k SessionKey, uri string) (first bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byApp[k.App][uri] == 0 && len(s.byApp[k.App]) >= maxSubscriptions {
		return false, core.Errorf(core.CodeUnavailable, "%w", link.ErrTooManySubscriptions)
	}
	addCount(s.bySession, k, uri, 1)
	return addCount(s.byApp, k.App, uri, 1) == 1, nil
}

// Remove counts one less, and reports whether it was the last for the app and for the session.
func (s *Subscriptions) Remove(k SessionKey, uri string) (lastOfApp, lastOfSession bool) {
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
func (s *Subscriptions) OfApp(k interact.AppKey) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.byApp[k]))
}

// OfSession returns the resources that the clients of one instance are subscribed to.
func (s *Subscriptions) OfSession(k SessionKey) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.bySession[k]))
}
