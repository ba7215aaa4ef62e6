package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core/access"
)

const (
	reachEvery   = 30 * time.Second // between two checks of the identity providers
	reachTimeout = 10 * time.Second
)

// providerWatch tracks which identity providers can be reached. A server with an unreachable provider is ready: it still
// serves its apps, and API keys and existing logins still work. But nobody else can log in, so the outage is logged, measured
// and shown.
type providerWatch struct {
	access *access.Access
	log    hclog.Logger
	again  chan struct{} // capacity 1; filled when the configured providers change

	mu    sync.Mutex
	state map[string]error // by provider name; nil if it can be reached
}

// run checks the providers until ctx ends.
func (w *providerWatch) run(ctx context.Context) {
	tick := time.NewTicker(reachEvery)
	defer tick.Stop()
	for {
		w.ask(ctx)
		select {
		case <-ctx.Done():
			return
		case <-w.again:
		case <-tick.C:
		}
	}
}

// changed makes run check the providers immediately.
func (w *providerWatch) changed() {
	select {
	case w.again <- struct{}{}:
	default: // a check is already pending
	}
}

func (w *providerWatch) ask(ctx context.Context) {
	asking, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	now := w.access.Reach(asking)
	if ctx.Err() != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, err := range now {
		switch before := w.state[name]; {
		case err != nil && before == nil:
			w.log.Warn("identity provider unavailable; nobody can log in with it, and new tokens cannot be checked", "provider", name, "error", err)
		case err == nil && before != nil:
			w.log.Info("identity provider available again", "provider", name)
		}
	}
	w.state = now
}

// check returns an error that lists the providers that cannot be reached.
func (w *providerWatch) check(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []error
	for _, name := range slices.Sorted(maps.Keys(w.state)) {
		if err := w.state[name]; err != nil {
			all = append(all, fmt.Errorf("the identity provider %s is unavailable: %w", name, err))
		}
	}
	return errors.Join(all...)
}

// up returns, by provider name, whether each provider can be reached.
func (w *providerWatch) up() map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make(map[string]bool, len(w.state))
	for name, err := range w.state {
		all[name] = err == nil
	}
	return all
}
