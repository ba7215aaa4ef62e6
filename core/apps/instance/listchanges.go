package instance

import (
	"slices"
	"sync"

	"github.com/ropewalk/ropewalk/core"
)

// ListChanges collects which lists an app announced as changed since they were last read.
type ListChanges struct {
	mu    sync.Mutex
	lists []core.Kind
	wake  chan struct{} // holds one
}

// NewListChanges returns a ListChanges without changes.
func NewListChanges() *ListChanges { return &ListChanges{wake: make(chan struct{}, 1)} }

// AddListChange notes an announcement. The kinds are those of link.Options.OnListChanged.
func (l *ListChanges) AddListChange(kind core.Kind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, list := range AnnouncedLists(kind) {
		if !slices.Contains(l.lists, list) {
			l.lists = append(l.lists, list)
		}
	}
	select {
	case l.wake <- struct{}{}:
	default: // the one that is not read yet stands for this one, too
	}
}

// AnnouncedLists returns the lists that an announcement is about: MCP announces changes of resources
// and of resource templates by one notification.
func AnnouncedLists(kind core.Kind) []core.Kind {
	if kind == core.KindResources {
		return []core.Kind{core.KindResources, core.KindTemplates}
	}
	return []core.Kind{kind}
}

// ListsChanged receives after the app announced changes.
func (l *ListChanges) ListsChanged() <-chan struct{} { return l.wake }

// TakeListChanges returns the lists that changed, each once, and forgets them.
func (l *ListChanges) TakeListChanges() []core.Kind {
	l.mu.Lock()
	defer l.mu.Unlock()
	lists := l.lists
	l.lists = nil
	return lists
}
