package mcphttp

import (
	"slices"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// debounce gathers the changes of an app that starts or stops into one notification of each kind.
const debounce = 50 * time.Millisecond

// audience is somebody who is told when a list of its workspace changed. changed must not wait.
type audience interface{ changed(kind core.Kind) }

// hub watches what the apps of every workspace offer in which somebody listens.
type hub struct {
	tools Tools

	mu      sync.Mutex
	watches map[string]*watch
}

type watch struct {
	stop func()

	mu       sync.Mutex
	audience map[audience]struct{}
	pending  []core.Kind // changed, and not yet told
}

func newHub(t Tools) *hub { return &hub{tools: t, watches: map[string]*watch{}} }

// join adds somebody to those who are told; the first of a workspace starts the watch.
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

// leave takes somebody out; the last of a workspace ends the watch.
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

// changed does not wait: it is called from inside the rooms below.
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
		time.AfterFunc(debounce, w.tell)
	}
}

// tell tells what has changed since the last time.
func (w *watch) tell() {
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
			who.changed(kind)
		}
	}
}
