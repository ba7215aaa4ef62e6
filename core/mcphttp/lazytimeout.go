package mcphttp

import (
	"context"
	"sync"
	"time"
)

// lazyTimeout is a context that ends after a time, like one of context.WithTimeout, but makes its timer
// only when something waits on it. Nearly every question of the gates is answered from memory, without
// waiting (BenchmarkLazyTimeout).
type lazyTimeout struct {
	context.Context // the parent
	limit           time.Duration

	mu     sync.Mutex
	inner  context.Context // made when first needed
	cancel context.CancelFunc
	over   bool
}

func withLazyTimeout(parent context.Context, limit time.Duration) *lazyTimeout {
	return &lazyTimeout{Context: parent, limit: limit}
}

func (p *lazyTimeout) begun() context.Context {
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
func (p *lazyTimeout) Done() <-chan struct{} { return p.begun().Done() }

// Deadline implements context.Context.
func (p *lazyTimeout) Deadline() (time.Time, bool) { return p.begun().Deadline() }

// Err implements context.Context.
func (p *lazyTimeout) Err() error {
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
func (p *lazyTimeout) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over = true; p.cancel != nil {
		p.cancel()
	}
}
