package redis_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/redis"
)

// everyCall returns a call to each method of a store, by name.
func everyCall(ctx context.Context, store *redis.Store) map[string]func() error {
	return map[string]func() error{
		"Put": func() error { return store.Put(ctx, sessionstore.Record{ID: "one"}, time.Minute) },
		"Get": func() error { _, err := store.Get(ctx, "one"); return err },
		"Touch": func() error {
			return store.Touch(ctx, []sessionstore.Touch{{ID: "one", LastAccessedAt: time.Now(), TTL: time.Minute}, {ID: "two", TTL: time.Minute}})
		},
		"Replace": func() error {
			_, err := store.Replace(ctx, sessionstore.Record{ID: "one"}, time.Minute, "")
			return err
		},
		"Delete": func() error { return store.Delete(ctx, "one") },
	}
}

// unavailable checks that every call promptly returns plugins.ErrUnavailable (the store's timeout is 2 s).
func unavailable(t *testing.T, store *redis.Store) {
	t.Helper()
	for name, call := range everyCall(t.Context(), store) {
		began := time.Now()
		err := call()
		if !errors.Is(err, plugins.ErrUnavailable) || errors.Is(err, plugins.ErrNotFound) {
			t.Errorf("%s: got %v, want unavailable", name, err)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%s took %s to say so", name, took)
		}
	}
}

func TestARedisThatStopsIsUnavailableAndComesBack(t *testing.T) {
	server := testenv.StartRedis(t)
	store := openAt(t, server)
	if err := store.Put(t.Context(), sessionstore.Record{ID: "one"}, time.Minute); err != nil {
		t.Fatal(err)
	}
	server.Stop()
	unavailable(t, store)
	server.Start()
	if _, err := store.Get(t.Context(), "one"); !errors.Is(err, plugins.ErrNotFound) {
		t.Errorf("after the restart of an empty redis: got %v, want not found", err)
	}
	for name, call := range everyCall(t.Context(), store) {
		if err := call(); err != nil && !errors.Is(err, plugins.ErrNotFound) {
			t.Errorf("%s after the restart: %v", name, err)
		}
	}
}

func TestARedisThatHangsIsUnavailable(t *testing.T) {
	server := testenv.StartRedis(t)
	store := openAt(t, server)
	server.Pause()
	defer server.Resume()
	unavailable(t, store)
}

func TestTheCallersDeadlineHoldsWhileRedisHangs(t *testing.T) {
	server := testenv.StartRedis(t)
	store := open(t, map[string]any{"url": "redis://" + server.Addr, "timeout": "1m"})
	server.Pause()
	defer server.Resume()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	for name, call := range everyCall(ctx, store) {
		began := time.Now()
		if err := call(); !errors.Is(err, plugins.ErrUnavailable) {
			t.Errorf("%s: got %v, want unavailable", name, err)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%s took %s", name, took)
		}
	}
}

func TestConfigureNeedsAReachableRedis(t *testing.T) {
	server := testenv.StartRedis(t)
	server.Stop()
	store := redis.New()
	err := store.Configure(t.Context(), plugins.Config{JSON: []byte(`{"url": "redis://` + server.Addr + `", "timeout": "200ms"}`)})
	if !errors.Is(err, plugins.ErrUnavailable) {
		t.Errorf("got %v, want unavailable", err)
	}
	if err := store.Close(); err != nil {
		t.Errorf("close after a failed Configure: %v", err)
	}
}
