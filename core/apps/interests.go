package apps

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/link"
)

// maxInterests bounds the resources of one app whose updates are wanted.
const maxInterests = 1000

// interests counts who wants to hear of updates of an app's resources, so that the app is told of
// each resource once, and again after it was restarted.
type interests struct {
	mu    sync.Mutex
	byApp map[key]map[string]int // by URI, as the app names it
	bySet map[set]map[string]int // the same, of those whom one instance of the app serves
}

// set is those in whose place an app has an instance beside its shared one (annexKey): one session,
// or, when that is "", everyone without a session.
type set struct {
	app     key
	session string
}

func newInterests() *interests {
	return &interests{byApp: map[key]map[string]int{}, bySet: map[set]map[string]int{}}
}

// add counts one more and reports whether it is the first.
func (i *interests) add(s set, uri string) (first bool, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.byApp[s.app][uri] == 0 && len(i.byApp[s.app]) >= maxInterests {
		return false, core.Errorf(core.CodeUnavailable, "%w", link.ErrWatched)
	}
	count(i.bySet, s, uri, 1)
	return count(i.byApp, s.app, uri, 1) == 1, nil
}

// remove counts one less, and reports whether it was the last for the app and for the set.
func (i *interests) remove(s set, uri string) (last, lastOfSet bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.bySet[s][uri] == 0 {
		return false, false
	}
	lastOfSet = count(i.bySet, s, uri, -1) == 0
	return count(i.byApp, s.app, uri, -1) == 0, lastOfSet
}

// count changes how many want a URI, and keeps nothing of those that nobody wants.
func count[K comparable](all map[K]map[string]int, k K, uri string, more int) int {
	if all[k] == nil {
		all[k] = map[string]int{}
	}
	all[k][uri] += more
	n := all[k][uri]
	if n > 0 {
		return n
	}
	if delete(all[k], uri); len(all[k]) == 0 {
		delete(all, k)
	}
	return 0
}

func (i *interests) of(k key) []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Collect(maps.Keys(i.byApp[k]))
}

func (i *interests) ofSet(s set) []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Collect(maps.Keys(i.bySet[s]))
}

// Subscribe asks for notifications/resources/updated about one resource, named as its app names it,
// for a session (Client.Session), "" for a client without one. They come to Listen, for whichever
// session, until Unsubscribe was called as often. An app that restarts is asked again, and so is the
// instance that it has for the session. The errors are those of Call.
func (y *Manager) Subscribe(ctx context.Context, workspace, server, session, uri string) error {
	a, err := y.find(workspace, server)
	if err != nil {
		return err
	}
	s := set{a.key, session}
	first, err := y.interests.add(s, uri)
	if err != nil {
		return err
	}
	if first {
		err = a.aboutResource(ctx, "resources/subscribe", uri, instance.Subscribe)
	}
	if took := a.apart(ctx, session, uri, instance.Subscribe); err != nil && !took {
		y.interests.remove(s, uri)
		return err
	}
	return nil
}

// Unsubscribe is the opposite of one Subscribe. An app that is gone, or does not run, needs not be told.
func (y *Manager) Unsubscribe(ctx context.Context, workspace, server, session, uri string) error {
	last, lastOfSet := y.interests.remove(set{key{workspace, server}, session}, uri)
	a, err := y.find(workspace, server)
	if err != nil {
		return nil //nolint:nilerr // an app that is gone tells of nothing
	}
	if lastOfSet {
		a.apart(ctx, session, uri, instance.Unsubscribe)
	}
	if !last || a.conn() == nil {
		return nil
	}
	return a.aboutResource(ctx, "resources/unsubscribe", uri, instance.Unsubscribe)
}

// apart tells the instance that the app has for a session, if it has one, and reports whether that
// took it. One that is being started is waited for: it may have looked too early.
func (a *app) apart(ctx context.Context, session, uri string, tell func(instance, context.Context, string) error) (took bool) {
	limit, cancel := context.WithTimeout(ctx, levelPatience)
	defer cancel()
	conn := a.manager.annexes.await(limit, annexKey{a, session})
	if conn == nil {
		return false
	}
	if err := tell(conn, limit, uri); err != nil {
		a.log.Debug("The instance of a session was not told which updates are wanted", "uri", uri, "error", err)
		return false
	}
	return true
}

func (a *app) aboutResource(ctx context.Context, method, uri string, tell func(instance, context.Context, string) error) error {
	conn, err := a.queue(ctx)
	if err != nil {
		return err
	}
	defer func() { <-a.calls }()
	limit, cancel := context.WithTimeoutCause(ctx, a.manager.o.CallTimeout, errDeadline)
	defer cancel()
	if err := tell(conn, limit, uri); err != nil {
		return a.callError(ctx, limit, conn, method, err)
	}
	return nil
}

// remind tells an instance that has just started what is wanted of it.
func (a *app) remind(ctx context.Context, conn instance) {
	a.manager.levels.apply(ctx, a, conn)
	a.want(ctx, conn, a.manager.interests.of(a.key))
}

// want tells an instance of which resources updates are wanted.
func (a *app) want(ctx context.Context, conn instance, uris []string) {
	for _, uri := range uris {
		limit, cancel := context.WithTimeout(ctx, levelPatience)
		err := conn.Subscribe(limit, uri)
		cancel()
		if err != nil && ctx.Err() == nil {
			a.log.Debug("An app that was started did not take a subscription", "uri", uri, "error", err)
		}
	}
}
