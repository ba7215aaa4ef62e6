package instance

import (
	"slices"
	"sync"

	"github.com/ropewalk/ropewalk/core"
)

// ListChanges collects the lists that an app has announced as changed since they were last taken.
type ListChanges struct {
	mu    sync.Mutex
	lists []core.Kind
	wake  chan struct{} // capacity 1
}

// NewListChanges returns an empty ListChanges.
func NewListChanges() *ListChanges { return &ListChanges{wake: make(chan struct{}, 1)} }

// AddListChange records an announcement. For the kinds, see link.Options.OnListChanged.
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
	default: // an unread signal covers this change as well
	}
}

// AnnouncedLists returns the lists that an announcement covers. MCP announces changes of resources and of resource
// templates with the same notification.
func AnnouncedLists(kind core.Kind) []core.Kind {
	if kind == core.KindResources {
		return []core.Kind{core.KindResources, core.KindTemplates}
	}
	return []core.Kind{kind}
}

// ListsChanged returns a channel that is signalled when the app has announced changes.
func (l *ListChanges) ListsChanged() <-chan struct{} { return l.wake }

// TakeListChanges returns each changed list once and clears them.
func (l *ListChanges) TakeListChanges() []core.Kind {
	l.mu.Lock()
	defer l.mu.Unlock()
	lists := l.lists
	l.lists = nil
	return lists
}
