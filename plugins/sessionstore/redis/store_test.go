package redis_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/redis"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/sessionstoretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open configures a store with the settings and closes it when the test ends.
func open(t *testing.T, settings map[string]any) *redis.Store {
	t.Helper()
	raw, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	store := redis.New()
	if err := store.Configure(t.Context(), plugins.Config{JSON: raw}); err != nil {
		t.Fatalf("configure: %v", err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func openAt(t *testing.T, r *testenv.Redis) *redis.Store {
	t.Helper()
	return open(t, map[string]any{"url": "redis://" + r.Addr, "timeout": "2s"})
}

func TestTheContract(t *testing.T) {
	server := testenv.StartRedis(t)
	t.Run("direct", func(t *testing.T) {
		t.Parallel()
		proxy, err := kit.NewProxy(server.Addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(proxy.Close)
		at := func(address string) map[string]any { return map[string]any{"url": "redis://" + address} }
		plugintest.Judge(t, sessionstoretest.Properties(), plugintest.Trial(kit.Quick), sessionstoretest.Subject{
			Store: open(t, at(proxy.Address())), Second: open(t, at(server.Addr)), Durable: true, Backend: proxy,
			Restart: func(context.Context) error { return nil }, // its sessions are only in Redis
		})
	})
	t.Run("as an executable", func(t *testing.T) {
		t.Parallel()
		testenv.PassesItsKit(t, 0, "sessionstore-redis", `{"url": "redis://${backend}", "timeout": "2s"}`, "--backend", server.Addr)
	})
}

func TestTwoServersShareSessionsUnderOnePrefixOnly(t *testing.T) {
	server := testenv.StartRedis(t)
	a, b := openAt(t, server), openAt(t, server)
	other := open(t, map[string]any{"url": "redis://" + server.Addr, "keyPrefix": "other:"})
	rec := sessionstore.Record{ID: "one", Subject: "somebody"}
	if err := a.Put(t.Context(), rec, time.Minute); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Get(t.Context(), "one"); err != nil || got.Subject != "somebody" {
		t.Errorf("the second server got %+v, %v", got, err)
	}
	if _, err := other.Get(t.Context(), "one"); !errors.Is(err, plugins.ErrNotFound) {
		t.Errorf("the server with another prefix got %v, want not found", err)
	}
	if keys := server.Do("keys", "*"); keys != "ropewalk:session:one" {
		t.Errorf("redis holds the keys %q", keys)
	}
}

func TestEveryRecordHasALifetime(t *testing.T) {
	server := testenv.StartRedis(t)
	store := openAt(t, server)
	if err := store.Put(t.Context(), sessionstore.Record{ID: "one"}, time.Minute); err != nil {
		t.Fatal(err)
	}
	later := sessionstore.Touch{ID: "one", LastAccessedAt: time.Now(), TTL: time.Minute}
	older := sessionstore.Touch{ID: "one", LastAccessedAt: time.Unix(0, 0), TTL: time.Minute}
	for _, batch := range [][]sessionstore.Touch{nil, {later}, {older}} {
		if err := store.Touch(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		if ttl := server.Do("ttl", "ropewalk:session:one"); ttl == "-1" || ttl == "-2" {
			t.Errorf("after the batch %v the key's ttl is %s", batch, ttl)
		}
	}
}

func TestATouchSurvivesAFlushOfScripts(t *testing.T) {
	server := testenv.StartRedis(t)
	store := openAt(t, server)
	if err := store.Put(t.Context(), sessionstore.Record{ID: "one"}, time.Minute); err != nil {
		t.Fatal(err)
	}
	at := time.Now().Truncate(time.Millisecond).UTC()
	server.Do("script", "flush")
	if err := store.Touch(t.Context(), []sessionstore.Touch{{ID: "one", LastAccessedAt: at, TTL: time.Minute}}); err != nil {
		t.Fatal(err)
	}
	if rec, err := store.Get(t.Context(), "one"); err != nil || !rec.LastAccessedAt.Equal(at) {
		t.Errorf("after the touch: %v, %v, want %v", rec.LastAccessedAt, err, at)
	}
}

func TestAnUnrecognizedValueIsNeitherASessionNorAbsent(t *testing.T) {
	server := testenv.StartRedis(t)
	store := openAt(t, server)
	server.Do("set", "ropewalk:session:text", "hello")
	server.Do("lpush", "ropewalk:session:list", "hello")
	for _, id := range []string{"text", "list"} {
		if _, err := store.Get(t.Context(), id); err == nil || errors.Is(err, plugins.ErrNotFound) {
			t.Errorf("%s: got %v, want an error that is not not-found", id, err)
		}
	}
}
