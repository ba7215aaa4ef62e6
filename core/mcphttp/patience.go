package mcphttp

import (
	"context"
	"sync"
	"time"
)

// patience is a context that ends after a time, like one of context.WithTimeout, but costs next to
// nothing until somebody waits on it. What is remembered is answered without waiting, and that is
// nearly every question a gate asks.
type patience struct {
	context.Context // the parent
	limit           time.Duration

	mu     sync.Mutex
	inner  context.Context // made when first needed
	cancel context.CancelFunc
	over   bool
}

func withPatience(parent context.Context, limit time.Duration) *patience {
	return &patience{Context: parent, limit: limit}
}

func (p *patience) begun() context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inner == nil {
		p.inner, p.cancel = context.WithTimeout(p.Context, p.limit)
		if p.over {
			p.cancel()
		}
	}
	return p.inner
}

// Done implements context.Context. The time counts from the first time it is asked for.
func (p *patience) Done() <-chan struct{} { return p.begun().Done() }

// Deadline implements context.Context.
func (p *patience) Deadline() (time.Time, bool) { return p.begun().Deadline() }

// Err implements context.Context.
func (p *patience) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.inner != nil:
		return p.inner.Err()
	case p.over:
		return context.Canceled
	}
	return p.Context.Err()
}

// end ends the context.
func (p *patience) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over = true; p.cancel != nil {
		p.cancel()
	}
}
