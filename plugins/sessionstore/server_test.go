package sessionstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// trusting is a store that does not check its arguments and records whether it was called.
type trusting struct {
	sessionstore.Store
	asked bool
}

func (s *trusting) Put(context.Context, sessionstore.Record, time.Duration) error {
	s.asked = true
	return nil
}

func (s *trusting) Touch(context.Context, []sessionstore.Touch) error {
	s.asked = true
	return nil
}

func TestASessionStorePluginReceivesOnlyValidCalls(t *testing.T) {
	store := &trusting{}
	client := sessionstore.Client(plugintest.Configured(t, sessionstore.Plugin(store), ""))
	rec := sessionstore.Record{ID: "one"}
	for what, call := range map[string]func() error{
		"a put without an id":          func() error { return client.Put(t.Context(), sessionstore.Record{}, time.Minute) },
		"a put without a lifetime":     func() error { return client.Put(t.Context(), rec, 0) },
		"a touch with a negative life": func() error { return client.Touch(t.Context(), []sessionstore.Touch{{ID: "one", TTL: -1}}) },
	} {
		if err := call(); !errors.Is(err, plugins.ErrInvalid) || store.asked {
			t.Errorf("%s: got %v; the store received: %v", what, err, store.asked)
		}
	}
	if err := client.Put(t.Context(), rec, time.Minute); err != nil || !store.asked {
		t.Errorf("a valid put: got %v; the store received: %v", err, store.asked)
	}
}
