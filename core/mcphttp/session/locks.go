package session

import (
	"context"
	"sync"
)

// Locks holds a lock for each session that is being moved from or to another server. The zero value has
// none.
type Locks struct {
	mu     sync.Mutex
	locked map[string]chan struct{} // closed when the lock is free
}

// Lock locks a session until the returned function is called. The error is ctx's.
func (l *Locks) Lock(ctx context.Context, id string) (unlock func(), err error) {
	for {
		l.mu.Lock()
		held, isLocked := l.locked[id]
		if !isLocked {
			break
		}
		l.mu.Unlock()
		select {
		case <-held:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	defer l.mu.Unlock()
	if l.locked == nil {
		l.locked = map[string]chan struct{}{}
	}
	free := make(chan struct{})
	l.locked[id] = free
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.locked, id)
		close(free)
	}, nil
}
