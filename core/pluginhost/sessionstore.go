package pluginhost

import (
	"context"
	"errors"
	"time"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// SessionStore is a session store in its own process, or the memory store in this one. It is a
// sessionstore.Store; Close it when nobody uses it any more.
type SessionStore struct{ *slot[sessionstore.Store] }

// SessionStore starts the configured session store. Wrong settings are a *plugins.ConfigError,
// everything else that keeps it from starting a *StartError. Handles of old are those that the caller closes
// when the new one is in use; see exclusive.go for what happens to them.
func (h *Host) SessionStore(ctx context.Context, p config.Plugin, old ...*SessionStore) (*SessionStore, error) {
	t, err := h.find(plugins.KindSessionStore, p)
	if err != nil {
		return nil, err
	}
	var slots []*slot[sessionstore.Store]
	for _, other := range old {
		slots = append(slots, other.slot)
	}
	s, err := load(ctx, h, t, contract[sessionstore.Store]{newClient: clientOf(t, sessionstore.Clients()), harmless: getNothing}, slots)
	if err != nil {
		return nil, err
	}
	return &SessionStore{s}, nil
}

// getNothing reads a session that does not exist: the answer is plugins.ErrNotFound only when the backend
// was read.
func getNothing(ctx context.Context, store sessionstore.Store) error {
	if _, err := store.Get(ctx, "probe"); !errors.Is(err, plugins.ErrNotFound) {
		return err
	}
	return nil
}

// Store returns the session store as a sessionstore.Store, which is a sessionstore.Replacer if the plugin
// has that capability.
func (s *SessionStore) Store() sessionstore.Store {
	if s.has(plugins.CapabilityReplace, func(store sessionstore.Store) bool {
		_, replaces := store.(sessionstore.Replacer)
		return replaces
	}) {
		return replacer{*s}
	}
	return *s
}

// replacer is a session store with the capability "replace".
type replacer struct{ SessionStore }

// Replace is sessionstore.Replacer's. A call whose process died may have been carried out: its caller then
// finds its own owner in the record.
func (s replacer) Replace(ctx context.Context, rec sessionstore.Record, ttl time.Duration, owner string) (replaced bool, err error) {
	err = s.call(ctx, func(ctx context.Context, store sessionstore.Store) error {
		other, ok := store.(sessionstore.Replacer)
		if !ok {
			return plugins.ErrUnimplemented
		}
		replaced, err = other.Replace(ctx, rec, ttl, owner)
		return err
	})
	return replaced, err
}

// Put is sessionstore.Store's.
func (s SessionStore) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	return s.call(ctx, func(ctx context.Context, store sessionstore.Store) error { return store.Put(ctx, rec, ttl) })
}

// Get is sessionstore.Store's.
func (s SessionStore) Get(ctx context.Context, id string) (rec sessionstore.Record, err error) {
	err = s.call(ctx, func(ctx context.Context, store sessionstore.Store) error {
		rec, err = store.Get(ctx, id)
		return err
	})
	return rec, err
}

// Touch is sessionstore.Store's.
func (s SessionStore) Touch(ctx context.Context, batch []sessionstore.Touch) error {
	return s.call(ctx, func(ctx context.Context, store sessionstore.Store) error { return store.Touch(ctx, batch) })
}

// Delete is sessionstore.Store's.
func (s SessionStore) Delete(ctx context.Context, id string) error {
	return s.call(ctx, func(ctx context.Context, store sessionstore.Store) error { return store.Delete(ctx, id) })
}
