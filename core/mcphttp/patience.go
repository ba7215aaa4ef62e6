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
}

func withPatience(parent context.Context, limit time.Duration) *patience {
	return &patience{Context: parent, limit: limit}
}

func (p *patience) begun() context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inner == nil {
		p.inner, p.cancel = context.WithTimeout(p.Context, p.limit)
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
	if p.inner == nil {
		return p.Context.Err()
	}
	return p.inner.Err()
}

// end ends the context.
func (p *patience) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inner == nil {
		p.inner = over{p.Context}
		return
	}
	if p.cancel != nil {
		p.cancel()
	}
}

// over is a context that has ended.
type over struct{ context.Context }

func (over) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

func (over) Err() error { return context.Canceled }
