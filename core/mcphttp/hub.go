package mcphttp

import (
	"slices"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// debounce gathers the changes of an app that starts or stops into one notification of each kind.
const debounce = 50 * time.Millisecond

// audience is notified when a list of its workspace changed. ListChanged must not wait.
type audience interface{ ListChanged(kind core.Kind) }

// hub watches the lists of every workspace that has an audience.
type hub struct {
	tools Tools

	mu      sync.Mutex
	watches map[string]*watch
}

type watch struct {
	stop func()

	mu       sync.Mutex
	audience map[audience]struct{}
	pending  []core.Kind // changed, and not yet sent
}

func newHub(t Tools) *hub { return &hub{tools: t, watches: map[string]*watch{}} }

// join adds an audience; the first of a workspace starts the watch.
func (h *hub) join(workspace string, who audience) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.watches[workspace]
	if w == nil {
		w = &watch{audience: map[audience]struct{}{}}
		h.watches[workspace] = w
		w.stop = h.tools.WatchLists(workspace, w.changed)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.audience[who] = struct{}{}
}

// leave removes an audience; the last of a workspace ends the watch.
func (h *hub) leave(workspace string, who audience) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.watches[workspace]
	if w == nil {
		return
	}
	w.mu.Lock()
	delete(w.audience, who)
	empty := len(w.audience) == 0
	w.mu.Unlock()
	if empty {
		delete(h.watches, workspace)
		w.stop()
	}
}

// changed does not wait: the apps call it while they change.
func (w *watch) changed(kind core.Kind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if kind == core.KindTemplates { // MCP has one notification for both
		kind = core.KindResources
	}
	if slices.Contains(w.pending, kind) {
		return
	}
	if w.pending = append(w.pending, kind); len(w.pending) == 1 {
		time.AfterFunc(debounce, w.notify)
	}
}

// notify sends what has changed since the last time.
func (w *watch) notify() {
	w.mu.Lock()
	kinds := w.pending
	w.pending = nil
	all := make([]audience, 0, len(w.audience))
	for who := range w.audience {
		all = append(all, who)
	}
	w.mu.Unlock()
	for _, who := range all {
		for _, kind := range kinds {
			who.ListChanged(kind)
		}
	}
}
