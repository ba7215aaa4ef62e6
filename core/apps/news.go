package apps

import (
	"slices"
	"sync"

	"github.com/ropewalk/ropewalk/core"
)

// news is which of its lists an app said to have changed, since that was last asked.
type news struct {
	mu    sync.Mutex
	lists []core.Kind
	wake  chan struct{} // holds one
}

func newNews() *news { return &news{wake: make(chan struct{}, 1)} }

// tell takes the kinds of link.Options.OnListChanged, of which "resources" stands for the templates, too.
func (n *news) tell(kind core.Kind) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, list := range listsOf(kind) {
		if !slices.Contains(n.lists, list) {
			n.lists = append(n.lists, list)
		}
	}
	select {
	case n.wake <- struct{}{}:
	default: // one that is not read yet stands for this one too
	}
}

func listsOf(kind core.Kind) []core.Kind {
	if kind == core.KindResources {
		return []core.Kind{core.KindResources, core.KindTemplates}
	}
	return []core.Kind{kind}
}

// Changed receives after the app said that lists changed.
func (n *news) Changed() <-chan struct{} { return n.wake }

// Take is the lists that changed; what is taken is told once.
func (n *news) Take() []core.Kind {
	n.mu.Lock()
	defer n.mu.Unlock()
	lists := n.lists
	n.lists = nil
	return lists
}
