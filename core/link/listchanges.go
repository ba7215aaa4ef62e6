package link

import (
	"slices"
	"sync"
)

// listChanges turns list_changed notifications into calls of Options.OnListChanged. A kind that is added
// again before its call is reported once.
type listChanges struct {
	mu    sync.Mutex
	kinds []string
	wake  chan struct{} // holds one
	group sync.WaitGroup
}

func (c *listChanges) add(kind string) {
	c.mu.Lock()
	if !slices.Contains(c.kinds, kind) {
		c.kinds = append(c.kinds, kind)
	}
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *listChanges) drain() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	kinds := c.kinds
	c.kinds = nil
	return kinds
}

// start reports changes until the link is done.
func (c *listChanges) start(l *Link) {
	c.group.Go(func() {
		for {
			select {
			case <-l.done:
				return
			case <-c.wake:
			}
			for _, kind := range c.drain() {
				c.report(l, kind)
			}
		}
	})
}

func (c *listChanges) report(l *Link, kind string) {
	defer func() {
		if r := recover(); r != nil {
			l.log.Error("the receiver of a changed list panicked", "app", l.o.Name, "kind", kind, "panic", r)
		}
	}()
	l.o.OnListChanged(kind)
}
