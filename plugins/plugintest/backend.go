package plugintest

import (
	"context"
	"errors"
	"sync"
)

// Backend is the fake backend of an implementation in the test process, as a kit.Backend.
type Backend struct {
	mu      sync.Mutex
	stopped bool
	stalled chan struct{} // closed when it works again; nil unless it is stalled
}

// Stop makes the backend unavailable.
func (b *Backend) Stop(context.Context) error { return b.set(true, nil) }

// Stall makes the backend wait.
func (b *Backend) Stall(context.Context) error { return b.set(false, make(chan struct{})) }

// Start makes the backend work again.
func (b *Backend) Start(context.Context) error { return b.set(false, nil) }

func (b *Backend) set(stopped bool, stalled chan struct{}) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stalled != nil {
		close(b.stalled)
	}
	b.stopped, b.stalled = stopped, stalled
	return nil
}

// Reach waits while the backend is stalled. It returns an error if the backend is unavailable or ctx has ended.
func (b *Backend) Reach(ctx context.Context) error {
	b.mu.Lock()
	stopped, stalled := b.stopped, b.stalled
	b.mu.Unlock()
	if stopped {
		return errors.New("the backend is unavailable")
	}
	if stalled != nil {
		select {
		case <-stalled:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}
