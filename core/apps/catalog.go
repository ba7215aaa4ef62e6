package apps

import (
	"slices"
	"strings"
	"sync"

	"github.com/ropewalk/ropewalk/core"
)

// catalog keeps the tools of each workspace as one immutable slice, made anew when an app's tools
// come, go or change, and tells those who watch.
type catalog struct {
	read func(workspace string) []core.Tool // the tools as the apps stand

	mu      sync.RWMutex
	shelves map[string]*shelf // by workspace
	writing sync.Mutex        // held over reading the apps and putting the result, so that the last one wins
}

type shelf struct {
	tools    []core.Tool
	watchers map[*watcher]struct{}
	changing int // apps whose new tools may be seen to be there before they are on the shelf
}

type watcher struct{ changed func() }

func newCatalog(read func(string) []core.Tool) *catalog {
	return &catalog{read: read, shelves: map[string]*shelf{}}
}

// tools is never behind what an app's view shows: who saw an app running finds its tools.
func (c *catalog) tools(workspace string) []core.Tool {
	tools, current := c.look(workspace)
	if !current {
		c.refresh(workspace)
		tools, _ = c.look(workspace)
	}
	return tools
}

func (c *catalog) look(workspace string) (tools []core.Tool, current bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if s := c.shelves[workspace]; s != nil {
		return s.tools, s.changing == 0
	}
	return nil, true
}

// change says that an app is about to show a view with other tools; shown puts them on the shelf.
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

// refresh reads the workspace's apps again. The watchers are called, without any lock held, when
// the tools differ.
func (c *catalog) refresh(workspace string) {
	for _, w := range c.replace(workspace) {
		w.changed()
	}
}

func (c *catalog) replace(workspace string) (told []*watcher) {
	c.writing.Lock()
	defer c.writing.Unlock()
	tools := c.read(workspace)
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.shelf(workspace)
	defer c.tidy(workspace, s)
	if slices.EqualFunc(s.tools, tools, sameTool) {
		return nil
	}
	s.tools = tools
	for w := range s.watchers {
		told = append(told, w)
	}
	return told
}

// watch calls changed, which must not wait, after each change of the workspace's tools.
func (c *catalog) watch(workspace string, changed func()) (stop func()) {
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
		s = &shelf{watchers: map[*watcher]struct{}{}}
		c.shelves[workspace] = s
	}
	return s
}

// tidy forgets a workspace without tools and watchers: it costs no memory.
func (c *catalog) tidy(workspace string, s *shelf) {
	if len(s.tools) == 0 && len(s.watchers) == 0 && s.changing == 0 {
		delete(c.shelves, workspace)
	}
}

// collectTools is the workspace's tools as its apps stand, by server name and then in each app's
// own order.
func (y *Yard) collectTools(workspace string) []core.Tool {
	var all []core.Tool
	for _, a := range y.in(workspace) {
		all = append(all, a.now.Load().tools...)
	}
	return all
}

// in is the workspace's apps by name.
func (y *Yard) in(workspace string) []*app {
	y.mu.RLock()
	list := make([]*app, 0, len(y.apps[workspace]))
	for _, a := range y.apps[workspace] {
		list = append(list, a)
	}
	y.mu.RUnlock()
	slices.SortFunc(list, func(a, b *app) int { return strings.Compare(a.key.name, b.key.name) })
	return list
}
