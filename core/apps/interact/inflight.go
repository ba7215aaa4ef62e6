package interact

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// InFlight is a call in flight: its clock, and how its client is asked. The clock stops the call when
// the app is silent for too long. It stands still while the client is asked something, because a
// person may take longer than an app may be silent.
type InFlight struct {
	parent  context.Context // the call's own
	client  *Client         // nil when nobody can be asked
	asker   Asker
	timeout time.Duration // how long the app may be silent

	mu       sync.Mutex
	deadline *time.Timer     // nil until the clock was started
	open     int             // requests that the client has not answered yet
	lifetime context.Context // ends with the call; made when first needed
	cancel   context.CancelFunc
	finished bool
}

// Init prepares the call c for its way to the app. The clock does not run yet.
func (f *InFlight) Init(ctx context.Context, c *Call, timeout time.Duration) {
	f.parent, f.client, f.asker, f.timeout = ctx, c.Client, c.Asker, timeout
}

// StartClock starts the clock: onTimeout is called when the app was silent for too long.
func (f *InFlight) StartClock(onTimeout func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deadline = time.AfterFunc(f.timeout, onTimeout)
	if f.open > 0 {
		f.deadline.Stop()
	}
}

// Finish stops the clock and ends the call's lifetime.
func (f *InFlight) Finish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.finished = true
	if f.cancel != nil {
		f.cancel()
	}
	if f.deadline != nil {
		f.deadline.Stop()
	}
}

// life returns a context that ends with the call.
func (f *InFlight) life() context.Context {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lifetime == nil {
		f.lifetime, f.cancel = context.WithCancel(f.parent)
		if f.finished {
			f.cancel()
		}
	}
	return f.lifetime
}

// canAsk reports whether the client can answer requests that need the given abilities.
func (f *InFlight) canAsk(needed ability) bool {
	return f != nil && f.asker != nil && f.client != nil && f.client.abilities&needed == needed
}

// ask forwards a request of the app to the client.
func (f *InFlight) ask(ctx context.Context, q link.Question) (json.RawMessage, error) {
	if p, ok := f.asker.(ProgressAsker); ok && q.Notify != nil {
		return p.AskWithProgress(ctx, q.Method, q.Params, q.Notify)
	}
	return f.asker.Ask(ctx, q.Method, q.Params)
}

// pauseClock stops the clock while requests are open: opened is 1 for a new request, -1 for one that
// was answered, which may be after the call has finished.
func (f *InFlight) pauseClock(opened int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open += opened
	switch {
	case f.deadline == nil || f.finished || f.parent.Err() != nil:
	case f.open > 0:
		f.deadline.Stop()
	default:
		f.deadline.Reset(f.timeout)
	}
}

// resetClock is called on progress: the app is not silent.
func (f *InFlight) resetClock() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open == 0 && f.deadline != nil && !f.finished {
		f.deadline.Reset(f.timeout)
	}
}

// WithClock returns notify, resetting the clock at each notification; nil for nil.
func (f *InFlight) WithClock(notify func(rpc.Notification)) func(rpc.Notification) {
	if notify == nil {
		return nil
	}
	return func(n rpc.Notification) {
		f.resetClock()
		notify(n)
	}
}

// SessionOf returns the session that all of some calls in flight belong to, "" when there is none.
func SessionOf(calls []any) (session string) {
	for i, c := range calls {
		client := c.(*InFlight).client
		if client == nil || i > 0 && client.session != session {
			return ""
		}
		session = client.session
	}
	return session
}
