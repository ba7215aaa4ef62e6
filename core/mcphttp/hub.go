package mcphttp

import (
	"sync"
	"sync/atomic"
	"time"
)

// debounce gathers the changes of an app that starts or stops into one notification.
const debounce = 50 * time.Millisecond

// hub watches the tools of every workspace that has a session.
type hub struct {
	tools    Tools
	announce func(workspace string)

	mu      sync.Mutex
	watches map[string]*watch
}

type watch struct {
	sessions int
	stop     func()
	pending  atomic.Bool
}

func newHub(t Tools, announce func(workspace string)) *hub {
	return &hub{tools: t, announce: announce, watches: map[string]*watch{}}
}

// join counts a session in; the first of a workspace starts the watch.
func (h *hub) join(workspace string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.watches[workspace]
	if w == nil {
		w = &watch{}
		h.watches[workspace] = w
		w.stop = h.tools.Watch(workspace, func() { h.changed(workspace, w) })
	}
	w.sessions++
}

// leave counts a session out; the last of a workspace ends the watch.
func (h *hub) leave(workspace string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.watches[workspace]
	if w == nil {
		return
	}
	if w.sessions--; w.sessions == 0 {
		delete(h.watches, workspace)
		w.stop()
	}
}

// changed never waits and takes no lock: it is called from inside the rooms below.
func (h *hub) changed(workspace string, w *watch) {
	if w.pending.CompareAndSwap(false, true) {
		time.AfterFunc(debounce, func() {
			w.pending.Store(false)
			h.announce(workspace)
		})
	}
}
