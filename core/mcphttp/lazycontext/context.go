package lazycontext

import (
	"context"
	"sync"
	"time"
)

// Context is a context with a cancellation and perhaps a time limit, like one of the context package,
// which registers with its parent and makes its timer only when something waits on it. It is embedded in
// what it belongs to: Init must be called before anything else.
type Context struct {
	context.Context // the parent
	limit           time.Duration

	mu     sync.Mutex
	inner  context.Context // made when first needed
	cancel context.CancelFunc
	over   bool
}

// Init sets the parent, and a time limit unless it is 0. It is called once.
func (c *Context) Init(parent context.Context, limit time.Duration) {
	c.Context, c.limit = parent, limit
}

// whole returns the context of the context package that this one stands for.
func (c *Context) whole() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inner != nil {
		return c.inner
	}
	if c.limit > 0 {
		c.inner, c.cancel = context.WithTimeout(c.Context, c.limit)
	} else {
		c.inner, c.cancel = context.WithCancel(c.Context)
	}
	if c.over {
		c.cancel()
	}
	return c.inner
}

// Done implements context.Context. The time limit counts from the first call.
func (c *Context) Done() <-chan struct{} { return c.whole().Done() }

// Deadline implements context.Context.
func (c *Context) Deadline() (time.Time, bool) {
	if c.limit == 0 {
		return c.Context.Deadline()
	}
	return c.whole().Deadline()
}

// Value implements context.Context. Contexts made from this one find the whole one by it, which they can
// wait on without a goroutine.
func (c *Context) Value(key any) any {
	c.mu.Lock()
	inner := c.inner
	c.mu.Unlock()
	if inner != nil {
		return inner.Value(key)
	}
	return c.Context.Value(key)
}

// Err implements context.Context.
func (c *Context) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.inner != nil:
		return c.inner.Err()
	case c.over:
		return context.Canceled
	}
	return c.Context.Err()
}

// Cancel ends the context.
func (c *Context) Cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over = true; c.cancel != nil {
		c.cancel()
	}
}
