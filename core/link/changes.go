package link

import (
	"slices"
	"sync"
)

// changes turns list_changed notifications into calls of OnListChanged. A kind that is marked again
// before it was notified is notified once.
type changes struct {
	mu    sync.Mutex
	kinds []string
	wake  chan struct{} // holds one
	group sync.WaitGroup
}

func (c *changes) mark(kind string) {
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

func (c *changes) drain() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	kinds := c.kinds
	c.kinds = nil
	return kinds
}

// start tells until the link is done.
func (c *changes) start(l *Link) {
	c.group.Go(func() {
		for {
			select {
			case <-l.done:
				return
			case <-c.wake:
			}
			for _, kind := range c.drain() {
				c.tell(l, kind)
			}
		}
	})
}

func (c *changes) tell(l *Link, kind string) {
	defer func() {
		if r := recover(); r != nil {
			l.log.Error("the receiver of a changed list panicked", "app", l.o.Name, "kind", kind, "panic", r)
		}
	}()
	l.o.OnListChanged(kind)
}
