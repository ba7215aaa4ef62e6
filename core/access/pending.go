package access

import (
	"context"
	"encoding/json"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/ropewalk/ropewalk/core"
)

const (
	maxPending  = 10_000 // steps of browser logins; beyond this the oldest are dropped
	pendingLife = 10 * time.Minute
)

// pending holds the state of browser logins between two steps. Its keys are strings that only whoever takes the
// next step knows.
type pending struct {
	inMemory *lru.Cache[string, step]
	shared   Logins // used instead of inMemory; nil for a single server
}

type step struct {
	value   any
	expires time.Time
}

func newPending(shared Logins) *pending {
	inMemory, _ := lru.New[string, step](maxPending) // the only error is a size below 1
	return &pending{inMemory: inMemory, shared: shared}
}

func (p *pending) put(ctx context.Context, key string, value any, expires time.Time) error {
	if p.shared == nil {
		p.inMemory.Add(key, step{value, expires})
		return nil
	}
	record, err := json.Marshal(value)
	if err == nil {
		err = p.shared.PutLogin(ctx, fingerprintOf(key).String(), record, expires)
	}
	if err != nil {
		return unavailable(err)
	}
	return nil
}

// take returns and removes a value, if it has not expired. Otherwise the error is
// core.CodeUnauthenticated, or core.CodeUnavailable when the store fails.
func take[T any](ctx context.Context, p *pending, key string) (value T, err error) {
	unknown := refusedLogin("the state is unknown, used or expired")
	if p.shared == nil {
		s, ok := p.inMemory.Get(key)
		if !ok || !p.inMemory.Remove(key) || !time.Now().Before(s.expires) { // only one of two concurrent requests removes it
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
