package access

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

const (
	maxPending  = 10_000 // steps of browser logins; beyond this, those of the client with the most are dropped
	pendingLife = 10 * time.Minute
)

// pending holds the state of browser logins between two steps. Its keys are strings known only to whoever takes the
// next step.
type pending struct {
	shared Logins // used instead of memory; nil for a single server

	mu    sync.Mutex
	steps map[string]step
	held  map[string]int // steps by client
}

type step struct {
	value   any
	client  string
	expires time.Time
}

func newPending(shared Logins) *pending {
	return &pending{shared: shared, steps: map[string]step{}, held: map[string]int{}}
}

// put stores a step of a login that a client started.
func (p *pending) put(ctx context.Context, key, client string, value any, expires time.Time) error {
	client = site(client)
	if p.shared == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.remove(key)
		p.makeRoom()
		p.steps[key] = step{value, client, expires}
		p.held[client]++
		return nil
	}
	record, err := json.Marshal(value)
	if err == nil {
		err = p.shared.PutLogin(ctx, fingerprintOf(key).String(), client, record, expires)
	}
	if err != nil {
		return unavailable(err)
	}
	return nil
}

// makeRoom drops the expired steps if there are too many, and then the oldest step of the client that has the most: a
// client that starts many logins loses only its own. The caller holds mu.
func (p *pending) makeRoom() {
	if len(p.steps) < maxPending {
		return
	}
	now := time.Now()
	for key, s := range p.steps {
		if !now.Before(s.expires) {
			p.remove(key)
		}
	}
	if len(p.steps) < maxPending {
		return
	}
	var most, oldest string
	for client, n := range p.held {
		if n > p.held[most] {
			most = client
		}
	}
	for key, s := range p.steps {
		if s.client == most && (oldest == "" || s.expires.Before(p.steps[oldest].expires)) {
			oldest = key
		}
	}
	p.remove(oldest)
}

// remove removes a step, if it is there, and returns it. The caller holds mu.
func (p *pending) remove(key string) (s step, ok bool) {
	if s, ok = p.steps[key]; !ok {
		return s, false
	}
	delete(p.steps, key)
	if p.held[s.client]--; p.held[s.client] == 0 {
		delete(p.held, s.client)
	}
	return s, true
}

// take returns and removes a value, if it has not expired. Otherwise the error is core.CodeUnauthenticated, or
// core.CodeUnavailable if the store fails.
func take[T any](ctx context.Context, p *pending, key string) (value T, err error) {
	unknown := refusedLogin("the state is unknown, used or expired")
	if p.shared == nil {
		p.mu.Lock()
		s, ok := p.remove(key)
		p.mu.Unlock()
		if !ok || !time.Now().Before(s.expires) {
			return value, unknown
		}
		if value, ok = s.value.(T); !ok {
			return value, unknown
		}
		return value, nil
	}
	record, err := p.shared.TakeLogin(ctx, fingerprintOf(key).String())
	switch {
	case core.CodeOf(err) == core.CodeNotFound:
		return value, unknown
	case err != nil:
		return value, unavailable(err)
	}
	if err := json.Unmarshal(record, &value); err != nil {
		return value, core.Wrap(core.CodeUnauthenticated, err, "authorization required")
	}
	return value, nil
}
