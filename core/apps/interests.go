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
}

func newInterests() *interests { return &interests{byApp: map[key]map[string]int{}} }

// add counts one more and reports whether it is the first.
func (i *interests) add(k key, uri string) (first bool, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.byApp[k] == nil {
		i.byApp[k] = map[string]int{}
	}
	if i.byApp[k][uri] == 0 && len(i.byApp[k]) >= maxInterests {
		return false, core.Errorf(core.CodeUnavailable, "%w", link.ErrWatched)
	}
	i.byApp[k][uri]++
	return i.byApp[k][uri] == 1, nil
}

// remove counts one less and reports whether it was the last.
func (i *interests) remove(k key, uri string) (last bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	uris := i.byApp[k]
	if uris[uri] == 0 {
		return false
	}
	if uris[uri]--; uris[uri] > 0 {
		return false
	}
	if delete(uris, uri); len(uris) == 0 {
		delete(i.byApp, k)
	}
	return true
}

func (i *interests) of(k key) []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Collect(maps.Keys(i.byApp[k]))
}

// Subscribe asks for notifications/resources/updated about one resource, named as its app names it.
// They come to Listen, for whichever session, until Unsubscribe was called as often. An app that
// restarts is asked again. The errors are those of Call.
func (y *Yard) Subscribe(ctx context.Context, workspace, server, uri string) error {
	a, err := y.find(workspace, server)
	if err != nil {
		return err
	}
	first, err := y.interests.add(a.key, uri)
	if err != nil || !first {
		return err
	}
	if err := a.aboutResource(ctx, "resources/subscribe", uri, instance.Subscribe); err != nil {
		y.interests.remove(a.key, uri)
		return err
	}
	return nil
}

// Unsubscribe is the opposite of one Subscribe. An app that is gone, or does not run, needs not be told.
func (y *Yard) Unsubscribe(ctx context.Context, workspace, server, uri string) error {
	a, err := y.find(workspace, server)
	if !y.interests.remove(key{workspace, server}, uri) || err != nil || a.conn() == nil {
		return nil //nolint:nilerr // an app that is gone tells of nothing
	}
	return a.aboutResource(ctx, "resources/unsubscribe", uri, instance.Unsubscribe)
}

func (a *app) aboutResource(ctx context.Context, method, uri string, tell func(instance, context.Context, string) error) error {
	conn, err := a.queue(ctx)
	if err != nil {
		return err
	}
	defer func() { <-a.calls }()
	limit, cancel := context.WithTimeoutCause(ctx, a.yard.o.CallTimeout, errDeadline)
	defer cancel()
	if err := tell(conn, limit, uri); err != nil {
		return a.callError(ctx, limit, conn, method, err)
	}
	return nil
}

// remind tells an instance that has just started what is wanted of it.
func (a *app) remind(ctx context.Context, conn instance) {
	a.yard.levels.apply(ctx, a, conn)
	for _, uri := range a.yard.interests.of(a.key) {
		limit, cancel := context.WithTimeout(ctx, levelPatience)
		err := conn.Subscribe(limit, uri)
		cancel()
		if err != nil && ctx.Err() == nil {
			a.log.Debug("An app that was restarted did not take a subscription", "uri", uri, "error", err)
		}
	}
}
