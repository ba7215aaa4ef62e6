package offer

import (
	"bytes"
	"slices"
	"sync"

	"github.com/ropewalk/ropewalk/core"
)

// Catalog holds what the apps of each workspace offer as one immutable value per workspace. The value is replaced when
// an app's lists appear, disappear or change. Watchers are notified of changes.
type Catalog struct {
	collect func(workspace string) *core.Offer // reads the current offer from the apps

	mu         sync.RWMutex
	workspaces map[string]*workspaceOffer
	replacing  sync.Mutex // held while reading the apps and storing the result, so that the last reading wins
}

type workspaceOffer struct {
	offer    *core.Offer
	own      map[string]*ownOffer // by session, "" for stateless clients; nil if there are none
	watchers map[*watcher]struct{}
	pending  int // number of apps whose new lists may be visible before they are in offer
}

type watcher struct{ changed func(core.Kind) }

// NewCatalog returns an empty Catalog. collect reads what a workspace's apps currently offer.
func NewCatalog(collect func(workspace string) *core.Offer) *Catalog {
	return &Catalog{collect: collect, workspaces: map[string]*workspaceOffer{}}
}

// Offer returns what the workspace offers. It is never older than the visible state of an app: a caller who has seen
// that an app is running finds its tools.
func (c *Catalog) Offer(workspace string) *core.Offer {
	offer, current := c.load(workspace, nil)
	if !current {
		c.Refresh(workspace)
		offer, _ = c.load(workspace, nil)
	}
	return offer
}

// load returns the offer for a session, or the shared offer if session is nil. current is false while changes are
// pending.
func (c *Catalog) load(workspace string, session *string) (offer *core.Offer, current bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	w := c.workspaces[workspace]
	if w == nil {
		return &core.Offer{}, true
	}
	if w.own != nil && session != nil {
		if own := w.own[*session]; own != nil {
			return own.merged, w.pending == 0
		}
	}
	return w.offer, w.pending == 0
}

// BeginChange announces that an app's lists are about to change. The caller must call finish afterwards, which reads
// the lists.
func (c *Catalog) BeginChange(workspace string) (finish func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.get(workspace).pending++
	return func() {
		c.Refresh(workspace)
		c.mu.Lock()
		defer c.mu.Unlock()
		w := c.get(workspace)
		w.pending--
		c.removeEmpty(workspace, w)
	}
}

// Refresh reads the workspace's apps again. It calls the watchers for each list that differs, without holding a lock.
func (c *Catalog) Refresh(workspace string) {
	announce(c.replace(workspace))
}

// Announce calls the watchers for all lists, after some people's lists have changed.
func (c *Catalog) Announce(workspace string) {
	c.mu.RLock()
	var watchers []*watcher
	if w := c.workspaces[workspace]; w != nil {
		watchers = w.list()
	}
	c.mu.RUnlock()
	announce([]core.Kind{core.KindTools, core.KindPrompts, core.KindResources, core.KindTemplates}, watchers)
}

func announce(lists []core.Kind, watchers []*watcher) {
	for _, kind := range lists {
		for _, w := range watchers {
			w.changed(kind)
		}
	}
}

func (c *Catalog) replace(workspace string) (lists []core.Kind, watchers []*watcher) {
	c.replacing.Lock()
	defer c.replacing.Unlock()
	offer := c.collect(workspace)
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.get(workspace)
	defer c.removeEmpty(workspace, w)
	if lists = Differences(w.offer, offer); lists == nil {
		return nil, nil
	}
	next := *w.offer
	for _, kind := range lists {
		switch kind {
		case core.KindTools:
			next.Tools, next.Held = offer.Tools, offer.Held
		case core.KindPrompts:
			next.Prompts = offer.Prompts
		case core.KindResources:
			next.Resources = offer.Resources
		case core.KindTemplates:
			next.Templates = offer.Templates
		}
	}
	w.offer = &next
	w.mergeOwn()
	return lists, w.list()
}

// Watch calls changed after each change to one of the workspace's lists. changed must not block.
func (c *Catalog) Watch(workspace string, changed func(core.Kind)) (stop func()) {
	one := &watcher{changed}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.get(workspace).watchers[one] = struct{}{}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if w := c.workspaces[workspace]; w != nil {
			delete(w.watchers, one)
			c.removeEmpty(workspace, w)
		}
	}
}

func (c *Catalog) get(workspace string) *workspaceOffer {
	w := c.workspaces[workspace]
	if w == nil {
		w = &workspaceOffer{offer: &core.Offer{}, watchers: map[*watcher]struct{}{}}
		c.workspaces[workspace] = w
	}
	return w
}

func (w *workspaceOffer) list() []*watcher {
	all := make([]*watcher, 0, len(w.watchers))
	for one := range w.watchers {
		all = append(all, one)
	}
	return all
}

// removeEmpty drops a workspace that offers nothing and has no watchers.
func (c *Catalog) removeEmpty(workspace string, w *workspaceOffer) {
	if len(w.watchers) == 0 && w.own == nil && w.pending == 0 && IsEmpty(w.offer) {
		delete(c.workspaces, workspace)
	}
}

// Differences returns the kinds of lists in which two offers differ.
func Differences(a, b *core.Offer) (lists []core.Kind) {
	for kind, equal := range map[core.Kind]bool{
		core.KindTools: slices.EqualFunc(a.Tools, b.Tools, func(a, b core.Tool) bool {
			return a.Server == b.Server && bytes.Equal(a.Raw, b.Raw)
		}) && slices.Equal(a.Held, b.Held),
		core.KindPrompts: slices.EqualFunc(a.Prompts, b.Prompts, func(a, b core.Prompt) bool {
			return a.Server == b.Server && bytes.Equal(a.Raw, b.Raw)
		}),
		core.KindResources: slices.EqualFunc(a.Resources, b.Resources, func(a, b core.Resource) bool {
			return a.Server == b.Server && bytes.Equal(a.Raw, b.Raw)
		}),
		core.KindTemplates: slices.EqualFunc(a.Templates, b.Templates, func(a, b core.ResourceTemplate) bool {
			return a.Server == b.Server && bytes.Equal(a.Raw, b.Raw)
		}),
	} {
		if !equal {
			lists = append(lists, kind)
		}
	}
	return lists
}

// IsEmpty reports whether an offer has no items.
func IsEmpty(o *core.Offer) bool {
	return len(o.Tools)+len(o.Held)+len(o.Prompts)+len(o.Resources)+len(o.Templates) == 0
}
