package offer

import (
	"cmp"
	"slices"

	"github.com/ropewalk/ropewalk/core"
)

// ownOffer is a workspace's offer to a session that has its own instances of some apps.
type ownOffer struct {
	apps   map[string]*core.Offer // the lists of these instances, by their app's server name
	merged *core.Offer            // the workspace's offer with these lists instead of those of the shared instances
}

// OfferOf returns what the workspace offers to a session; "" stands for all stateless clients. If the session has its
// own instance of an app, the result contains the lists of that instance. If there are no differences, it is the same
// value that Offer returns.
func (c *Catalog) OfferOf(workspace, session string) *core.Offer {
	offer, current := c.load(workspace, &session)
	if !current {
		c.Refresh(workspace)
		offer, _ = c.load(workspace, &session)
	}
	return offer
}

// SetOwn sets the lists of a session's own instance of an app. It returns the lists that have changed for the session.
func (c *Catalog) SetOwn(workspace, session, server string, lists *core.Offer) []core.Kind {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.get(workspace)
	before := w.offer
	if w.own == nil {
		w.own = map[string]*ownOffer{}
	}
	if own := w.own[session]; own == nil {
		w.own[session] = &ownOffer{apps: map[string]*core.Offer{}}
	} else {
		before = own.merged
	}
	own := w.own[session]
	own.apps[server] = lists
	own.merged = With(w.offer, own.apps)
	return Differences(before, own.merged)
}

// RemoveOwn undoes SetOwn and returns the lists that have changed for the session. It does nothing if the session's
// lists of this app have been replaced in the meantime.
func (c *Catalog) RemoveOwn(workspace, session, server string, lists *core.Offer) []core.Kind {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.workspaces[workspace]
	if w == nil || w.own[session] == nil || w.own[session].apps[server] != lists {
		return nil
	}
	return c.removeOwn(workspace, w, session, server)
}

// RemoveOwnOf removes an app's lists for all sessions. It returns the lists that have changed, by session.
func (c *Catalog) RemoveOwnOf(workspace, server string) map[string][]core.Kind {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.workspaces[workspace]
	if w == nil {
		return nil
	}
	changed := map[string][]core.Kind{}
	for session, own := range w.own {
		if own.apps[server] != nil {
			changed[session] = c.removeOwn(workspace, w, session, server)
		}
	}
	return changed
}

func (c *Catalog) removeOwn(workspace string, w *workspaceOffer, session, server string) []core.Kind {
	own := w.own[session]
	before := own.merged
	delete(own.apps, server)
	if len(own.apps) > 0 {
		own.merged = With(w.offer, own.apps)
		return Differences(before, own.merged)
	}
	if delete(w.own, session); len(w.own) == 0 {
		w.own = nil
	}
	c.removeEmpty(workspace, w)
	return Differences(before, w.offer)
}

// mergeOwn updates the offers of all sessions after the workspace's offer has changed.
func (w *workspaceOffer) mergeOwn() {
	for _, own := range w.own {
		own.merged = With(w.offer, own.apps)
	}
}

// With returns an offer in which the lists of some apps are replaced. If nothing differs, it returns shared itself.
func With(shared *core.Offer, apps map[string]*core.Offer) *core.Offer {
	merged := &core.Offer{
		Tools: replaced(shared.Tools, apps, func(o *core.Offer) []core.Tool { return o.Tools }, func(t core.Tool) string { return t.Server }),
		Held:  replaced(shared.Held, apps, func(o *core.Offer) []core.HeldTool { return o.Held }, func(h core.HeldTool) string { return h.Server }),
		Prompts: replaced(shared.Prompts, apps, func(o *core.Offer) []core.Prompt { return o.Prompts },
			func(p core.Prompt) string { return p.Server }),
		Resources: replaced(shared.Resources, apps, func(o *core.Offer) []core.Resource { return o.Resources },
			func(r core.Resource) string { return r.Server }),
		Templates: replaced(shared.Templates, apps, func(o *core.Offer) []core.ResourceTemplate { return o.Templates },
			func(t core.ResourceTemplate) string { return t.Server }),
	}
	if len(Differences(shared, merged)) == 0 {
		return shared
	}
	return merged
}

// replaced returns a list, sorted by app, with the items of some apps replaced.
func replaced[T any](shared []T, apps map[string]*core.Offer, listOf func(*core.Offer) []T, serverOf func(T) string) []T {
	list := make([]T, 0, len(shared))
	for _, item := range shared {
		if apps[serverOf(item)] == nil {
			list = append(list, item)
		}
	}
	for _, lists := range apps {
		list = append(list, listOf(lists)...)
	}
	slices.SortStableFunc(list, func(a, b T) int { return cmp.Compare(serverOf(a), serverOf(b)) })
	return list
}

// Union merges lists of one app: the items of the first, and then those that only the others have. A tool that is held
// back in one list but not in another is not held back.
func Union(lists []*core.Offer) *core.Offer {
	if len(lists) == 1 {
		return lists[0]
	}
	all := &core.Offer{
		Tools:     union(lists, func(o *core.Offer) []core.Tool { return o.Tools }, func(t core.Tool) string { return t.Name }),
		Held:      union(lists, func(o *core.Offer) []core.HeldTool { return o.Held }, func(h core.HeldTool) string { return h.Name }),
		Prompts:   union(lists, func(o *core.Offer) []core.Prompt { return o.Prompts }, func(p core.Prompt) string { return p.Name }),
		Resources: union(lists, func(o *core.Offer) []core.Resource { return o.Resources }, func(r core.Resource) string { return r.URI }),
		Templates: union(lists, func(o *core.Offer) []core.ResourceTemplate { return o.Templates }, func(t core.ResourceTemplate) string { return t.Template }),
	}
	all.Held = slices.DeleteFunc(all.Held, func(h core.HeldTool) bool {
		return slices.ContainsFunc(all.Tools, func(t core.Tool) bool { return t.Name == h.Name })
	})
	return all
}

func union[T any](lists []*core.Offer, of func(*core.Offer) []T, name func(T) string) (all []T) {
	seen := map[string]bool{}
	for _, o := range lists {
		for _, item := range of(o) {
			if !seen[name(item)] {
				seen[name(item)] = true
				all = append(all, item)
			}
		}
	}
	return all
}
