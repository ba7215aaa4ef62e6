package mcphttp

import (
	"crypto/sha256"
	"slices"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/tools"
)

const (
	// debounce combines the changes caused by an app that starts or stops into one notification per kind.
	debounce = 50 * time.Millisecond
	// maxPause is the longest interval between notifications while lists keep changing. Clients read the whole list
	// after each notification.
	maxPause = 3200 * time.Millisecond
)

// audience is notified when a list of its workspace has changed. ListChanged must not block.
type audience interface{ ListChanged(kind core.Kind) }

// hub watches the lists of each workspace that has an audience.
type hub struct {
	tools Tools

	mu      sync.Mutex
	watches map[string]*watch
}

type watch struct {
	tools Tools
	stop  func()

	mu       sync.Mutex
	audience map[audience]*listReader
	pending  []core.Kind   // changed but not yet sent
	views    bool          // views have changed since the last notification
	waiting  bool          // a call to notify is scheduled
	pause    time.Duration // before the latest notification
	notified time.Time     // when the latest notification was sent
}

// join adds an audience that reads the lists as a given caller and client. A workspace's first audience starts the
// watch.
func (h *hub) join(c core.Caller, from tools.From, who audience) {
	reader := newListReader(h.tools, c, from)
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.watches[c.Workspace.ID]
	if w == nil {
		w = &watch{tools: h.tools, audience: map[audience]*listReader{}}
		h.watches[c.Workspace.ID] = w
		stopLists, stopViews := h.tools.WatchLists(c.Workspace.ID, w.changed), h.tools.WatchViews(c.Workspace.ID, w.viewsChanged)
		w.stop = func() { stopLists(); stopViews() }
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.audience[who] = reader
}

// follow applies the current rights of a client's caller to the client's notifications.
func (h *hub) follow(c core.Caller, place *tools.Session, who audience) {
	if !place.Follow(c) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.watches[c.Workspace.ID]
	if w == nil {
		return
	}
	w.mu.Lock()
	reader := w.audience[who]
	w.mu.Unlock()
	if reader == nil {
		return
	}
	reader.mu.Lock()
	reader.caller = c
	reader.mu.Unlock()
	w.viewsChanged() // the lists may be narrowed differently
}

// leave removes an audience. When a workspace's last audience leaves, the watch ends.
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

// changed schedules a notification. It does not block, because apps call it in the middle of a change.
func (w *watch) changed(kind core.Kind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if kind == core.KindTemplates { // MCP has one notification for both
		kind = core.KindResources
	}
	if !slices.Contains(w.pending, kind) {
		w.pending = append(w.pending, kind)
	}
	w.notifySoon()
}

func (w *watch) viewsChanged() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.views = true
	w.notifySoon()
}

// notifySoon schedules a notification. While lists keep changing, each notification waits twice as long as the previous
// one.
func (w *watch) notifySoon() {
	if w.waiting {
		return
	}
	w.waiting = true
	if time.Since(w.notified) > w.pause+time.Second {
		w.pause = debounce
	} else {
		w.pause = min(2*w.pause, maxPause)
	}
	time.AfterFunc(w.pause, w.notify)
}

// notify sends the changes since the last notification.
func (w *watch) notify() {
	type member struct {
		audience
		*listReader
	}
	w.mu.Lock()
	kinds, views := w.pending, w.views
	w.pending, w.views, w.waiting, w.notified = nil, false, false, time.Now()
	all := make([]member, 0, len(w.audience))
	for who, reader := range w.audience {
		all = append(all, member{who, reader})
	}
	w.mu.Unlock()
	for _, one := range all {
		for _, kind := range one.changed(w.tools, kinds, views) {
			one.ListChanged(kind)
		}
	}
}

// listReader is a reader of a workspace's lists. A reader restricted by views is notified only if the visible part of a
// list changes.
type listReader struct {
	caller core.Caller
	from   tools.From

	mu   sync.Mutex
	seen map[core.Kind][sha256.Size]byte // hashes of the lists at the last notification; nil for a reader who sees everything
}

func newListReader(t Tools, c core.Caller, from tools.From) *listReader {
	r := &listReader{caller: c, from: from}
	if t.Narrowed(c) {
		r.seen = map[core.Kind][sha256.Size]byte{}
		for _, kind := range announced() {
			r.seen[kind] = r.read(t, kind)
		}
	}
	return r
}

// announced returns the lists whose changes have an MCP notification.
func announced() []core.Kind {
	return []core.Kind{core.KindTools, core.KindPrompts, core.KindResources}
}

// changed returns the kinds whose lists changed for the reader. views reports that views have changed. In that case,
// any list that they narrow may have changed too.
func (r *listReader) changed(t Tools, kinds []core.Kind, views bool) (changed []core.Kind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	narrowed := t.Narrowed(r.caller)
	if !narrowed && r.seen == nil {
		return kinds
	}
	if views {
		kinds = announced()
	}
	before := r.seen
	if r.seen == nil {
		r.seen = map[core.Kind][sha256.Size]byte{}
	}
	for _, kind := range kinds {
		now := r.read(t, kind)
		if was, known := before[kind]; !known || was != now {
			changed = append(changed, kind)
		}
		r.seen[kind] = now
	}
	if !narrowed {
		r.seen = nil
	}
	return changed
}

// read returns the hash of a list. The hash of resources also covers their templates.
func (r *listReader) read(t Tools, kind core.Kind) [sha256.Size]byte {
	hash := sha256.New()
	hash.Write(t.ListJSON(r.caller, r.from, kind))
	if kind == core.KindResources {
		hash.Write(t.ListJSON(r.caller, r.from, core.KindTemplates))
	}
	return [sha256.Size]byte(hash.Sum(nil))
}
