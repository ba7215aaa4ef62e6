package pluginhost

import (
	"context"
	"errors"
	"time"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// SessionStore is a session store in its own process, or the memory store in this one. It implements
// sessionstore.Store. Close it when it is no longer used.
type SessionStore struct{ *slot[sessionstore.Store] }

// SessionStore starts the configured session store, as open does.
func (h *Host) SessionStore(ctx context.Context, p config.Plugin, old ...*SessionStore) (*SessionStore, error) {
	s, err := open(ctx, h, kind[sessionstore.Store]{plugins.KindSessionStore, sessionstore.Clients(), getNothing}, p, old)
	if err != nil {
		return nil, err
	}
	return &SessionStore{s}, nil
}

// getNothing reads a session that does not exist. The result is plugins.ErrNotFound only if the backend was
// read.
func getNothing(ctx context.Context, store sessionstore.Store) error {
	if _, err := store.Get(ctx, "probe"); !errors.Is(err, plugins.ErrNotFound) {
		return err
	}
	return nil
}

// Store returns the session store as a sessionstore.Store, which also implements sessionstore.Replacer if the
// plugin has that capability.
func (s *SessionStore) Store() sessionstore.Store {
	if declares[sessionstore.Replacer](s.slot, plugins.CapabilityReplace) {
		return replacer{*s}
	}
	return *s
}

// replacer is a session store with the capability "replace".
type replacer struct{ SessionStore }

// Replace implements sessionstore.Replacer. If the process died during the call, the write may have happened:
// the caller then finds its own owner in the record.
func (s replacer) Replace(ctx context.Context, rec sessionstore.Record, ttl time.Duration, owner string) (bool, error) {
	return ask(ctx, s.call, capable[sessionstore.Replacer, sessionstore.Store](func(ctx context.Context, store sessionstore.Replacer) (bool, error) {
		return store.Replace(ctx, rec, ttl, owner)
	}))
}

// Put implements sessionstore.Store.
func (s SessionStore) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	return s.call(ctx, func(ctx context.Context, store sessionstore.Store) error { return store.Put(ctx, rec, ttl) })
}

// Get implements sessionstore.Store.
func (s SessionStore) Get(ctx context.Context, id string) (sessionstore.Record, error) {
	return ask(ctx, s.call, func(ctx context.Context, store sessionstore.Store) (sessionstore.Record, error) {
		return store.Get(ctx, id)
	})
}

// Touch implements sessionstore.Store.
func (s SessionStore) Touch(ctx context.Context, batch []sessionstore.Touch) error {
	return s.call(ctx, func(ctx context.Context, store sessionstore.Store) error { return store.Touch(ctx, batch) })
}

// Delete implements sessionstore.Store.
func (s SessionStore) Delete(ctx context.Context, id string) error {
	return s.call(ctx, func(ctx context.Context, store sessionstore.Store) error { return store.Delete(ctx, id) })
}
