package mcphttp

import (
	"context"
	"sync"
	"time"
)

// lifetime is the context of one call. It is a part of the call and costs nothing until somebody waits
// on it: nearly every call has its answer before that.
type lifetime struct {
	call *call

	mu   sync.Mutex
	over bool
	done chan struct{} // made when first asked for
}

// end ends the context.
func (l *lifetime) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	if l.over = true; l.done != nil {
		close(l.done)
	}
}

// Done implements context.Context.
func (l *lifetime) Done() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done == nil {
		if l.done = make(chan struct{}); l.over {
			close(l.done)
		}
	}
	return l.done
}

// Err implements context.Context.
func (l *lifetime) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return context.Canceled
	}
	return nil
}

// Deadline implements context.Context: the app's own clock limits a call.
func (l *lifetime) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value implements context.Context.
func (l *lifetime) Value(key any) any {
	if _, ok := key.(callKey); ok {
		return l.call
	}
	return nil
}
