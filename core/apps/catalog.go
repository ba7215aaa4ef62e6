package apps

import (
	"slices"
	"strings"
	"sync"

	"github.com/ropewalk/ropewalk/core"
)

// catalog keeps what the apps of each workspace offer as one immutable value, made anew when lists
// of an app come, go or change, and tells those who watch.
type catalog struct {
	read func(workspace string) *core.Offer // the offer as the apps stand

	mu      sync.RWMutex
	shelves map[string]*shelf // by workspace
	writing sync.Mutex        // held over reading the apps and putting the result, so that the last one wins
}

type shelf struct {
	offer    *core.Offer
	watchers map[*watcher]struct{}
	changing int // apps whose new lists may be seen to be there before they are on the shelf
}

type watcher struct{ changed func(core.Kind) }

func newCatalog(read func(string) *core.Offer) *catalog {
	return &catalog{read: read, shelves: map[string]*shelf{}}
}

// offer is never behind what an app's view shows: who saw an app running finds its tools.
func (c *catalog) offer(workspace string) *core.Offer {
	offer, current := c.look(workspace)
	if !current {
		c.refresh(workspace)
		offer, _ = c.look(workspace)
	}
	return offer
}

func (c *catalog) look(workspace string) (offer *core.Offer, current bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if s := c.shelves[workspace]; s != nil {
		return s.offer, s.changing == 0
	}
	return &core.Offer{}, true
}

// change says that an app is about to show a view with other lists; shown puts them on the shelf.
func (c *catalog) change(workspace string) (shown func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shelf(workspace).changing++
	return func() {
		c.refresh(workspace)
		c.mu.Lock()
		defer c.mu.Unlock()
		s := c.shelf(workspace)
		s.changing--
		c.tidy(workspace, s)
	}
}

// refresh reads the workspace's apps again. The watchers are called, without any lock held, for
// each list that differs.
func (c *catalog) refresh(workspace string) {
	lists, told := c.replace(workspace)
	for _, kind := range lists {
		for _, w := range told {
			w.changed(kind)
		}
	}
}

// announce tells the watchers of a change that no list of the catalog shows.
func (c *catalog) announce(workspace string, kind core.Kind) {
	c.mu.RLock()
	var told []*watcher
	if s := c.shelves[workspace]; s != nil {
		told = s.all()
	}
	c.mu.RUnlock()
	for _, w := range told {
		w.changed(kind)
	}
}

func (c *catalog) replace(workspace string) (lists []core.Kind, told []*watcher) {
	c.writing.Lock()
	defer c.writing.Unlock()
	offer := c.read(workspace)
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.shelf(workspace)
	defer c.tidy(workspace, s)
	if lists = differing(s.offer, offer); lists == nil {
		return nil, nil
	}
	next := *s.offer
	for _, kind := range lists {
		switch kind {
		case core.KindTools:
			next.Tools = offer.Tools
		case core.KindPrompts:
			next.Prompts = offer.Prompts
		case core.KindResources:
			next.Resources = offer.Resources
		case core.KindTemplates:
			next.Templates = offer.Templates
		}
	}
	s.offer = &next
	return lists, s.all()
}

// watch calls changed, which must not wait, after each change of one of the workspace's lists.
func (c *catalog) watch(workspace string, changed func(core.Kind)) (stop func()) {
	w := &watcher{changed}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shelf(workspace).watchers[w] = struct{}{}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if s := c.shelves[workspace]; s != nil {
			delete(s.watchers, w)
			c.tidy(workspace, s)
		}
	}
}

func (c *catalog) shelf(workspace string) *shelf {
	s := c.shelves[workspace]
	if s == nil {
		s = &shelf{offer: &core.Offer{}, watchers: map[*watcher]struct{}{}}
		c.shelves[workspace] = s
	}
	return s
}

func (s *shelf) all() []*watcher {
	all := make([]*watcher, 0, len(s.watchers))
	for w := range s.watchers {
		all = append(all, w)
	}
	return all
}

// tidy forgets a workspace that offers nothing to nobody: it costs no memory.
func (c *catalog) tidy(workspace string, s *shelf) {
	if len(s.watchers) == 0 && s.changing == 0 && differing(s.offer, &core.Offer{}) == nil {
		delete(c.shelves, workspace)
	}
}

// collectOffer is what the workspace offers as its apps stand, by server name and then in each
// app's own order.
func (y *Manager) collectOffer(workspace string) *core.Offer {
	var all core.Offer
	for _, a := range y.in(workspace) {
		one := &a.now.Load().offer
		all.Tools = append(all.Tools, one.Tools...)
		all.Prompts = append(all.Prompts, one.Prompts...)
		all.Resources = append(all.Resources, one.Resources...)
		all.Templates = append(all.Templates, one.Templates...)
	}
	return &all
}

// in is the workspace's apps by name.
func (y *Manager) in(workspace string) []*app {
	y.mu.RLock()
	list := make([]*app, 0, len(y.apps[workspace]))
	for _, a := range y.apps[workspace] {
		list = append(list, a)
	}
	y.mu.RUnlock()
	slices.SortFunc(list, func(a, b *app) int { return strings.Compare(a.key.name, b.key.name) })
	return list
}
