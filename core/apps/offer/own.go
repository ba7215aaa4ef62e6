package offer

import (
	"cmp"
	"slices"

	"github.com/ropewalk/ropewalk/core"
)

// ownOffer is what a workspace offers to one session for which apps have instances of their own.
type ownOffer struct {
	apps   map[string]*core.Offer // the lists of these instances, by the short name of their app
	merged *core.Offer            // the workspace's offer with these lists in place of those of the shared instances
}

// OfferOf returns what the workspace offers to one session, or to all stateless clients for "": the
// lists of an app are those of the instance that it has for the session, if it has one. It is the value
// that Offer returns unless they differ.
func (c *Catalog) OfferOf(workspace, session string) *core.Offer {
	offer, current := c.load(workspace, &session)
	if !current {
		c.Refresh(workspace)
		offer, _ = c.load(workspace, &session)
	}
	return offer
}

// SetOwn takes the lists of the instance that an app has for one session. It returns the lists that
// have changed for that session.
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
	own.merged = merge(w.offer, own.apps)
	return Differences(before, own.merged)
}

// RemoveOwn is the opposite of SetOwn. It does nothing when the app has other lists for the session
// now.
func (c *Catalog) RemoveOwn(workspace, session, server string, lists *core.Offer) []core.Kind {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.workspaces[workspace]
	if w == nil || w.own[session] == nil || w.own[session].apps[server] != lists {
		return nil
	}
	return c.removeOwn(workspace, w, session, server)
}

// RemoveOwnOf removes the lists that an app has for sessions. It returns which have changed, by session.
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
		own.merged = merge(w.offer, own.apps)
		return Differences(before, own.merged)
	}
	if delete(w.own, session); len(w.own) == 0 {
		w.own = nil
	}
	c.removeEmpty(workspace, w)
	return Differences(before, w.offer)
}

// mergeOwn merges a new offer of the workspace with the lists that apps have for sessions.
func (w *workspaceOffer) mergeOwn() {
	for _, own := range w.own {
		own.merged = merge(w.offer, own.apps)
	}
}

// merge returns an offer with other lists of some apps. It is the same value when nothing differs.
func merge(shared *core.Offer, apps map[string]*core.Offer) *core.Offer {
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
