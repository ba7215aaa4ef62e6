package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/postgres"
)

// unavailable checks that every call promptly returns plugins.ErrUnavailable (the store's timeout is 500 ms).
func unavailable(ctx context.Context, t *testing.T, store *postgres.Store) {
	t.Helper()
	calls := map[string]func() error{
		"Put":   func() error { return store.Put(ctx, sessionstore.Record{ID: "one"}, time.Minute) },
		"Get":   func() error { _, err := store.Get(ctx, "one"); return err },
		"Touch": func() error { return store.Touch(ctx, []sessionstore.Touch{{ID: "one", TTL: time.Minute}}) },
		"Replace": func() error {
			_, err := store.Replace(ctx, sessionstore.Record{ID: "one"}, time.Minute, "")
			return err
		},
		"Delete": func() error { return store.Delete(ctx, "one") },
	}
	for name, call := range calls {
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

func TestAPostgresThatStopsIsUnavailableAndComesBack(t *testing.T) {
	server := testenv.StartPostgres(t)
	store := open(t, map[string]any{"url": server.URL, "timeout": "2s"})
	if err := store.Put(t.Context(), sessionstore.Record{ID: "one"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	server.Stop()
	unavailable(t.Context(), t, store)
	server.Start()
	if _, err := store.Get(t.Context(), "one"); err != nil {
		t.Errorf("after the restart: %v", err)
	}
}

func TestAPostgresThatHangsIsUnavailable(t *testing.T) {
	server := testenv.StartPostgres(t)
	lock := func() *pgx.Conn {
		conn, err := pgx.Connect(t.Context(), server.URL)
		if err != nil {
			t.Fatal(err)
		}
		for _, statement := range []string{"BEGIN", "LOCK TABLE ropewalk_sessions IN ACCESS EXCLUSIVE MODE"} {
			if _, err := conn.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		return conn
	}
	t.Run("after the store's own timeout", func(t *testing.T) {
		store := open(t, map[string]any{"url": server.URL, "timeout": "2s"})
		defer lock().Close(t.Context())
		unavailable(t.Context(), t, store)
	})
	t.Run("after the caller's deadline", func(t *testing.T) {
		store := open(t, map[string]any{"url": server.URL, "timeout": "1m"})
		defer lock().Close(t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		unavailable(ctx, t, store)
	})
}

func TestConfigureNeedsAReachablePostgres(t *testing.T) {
	store := postgres.New()
	err := store.Configure(t.Context(), config(t, map[string]any{"url": "postgres://u:secret-canary@127.0.0.1:1/db", "timeout": "500ms"}))
	if !errors.Is(err, plugins.ErrUnavailable) {
		t.Errorf("got %v, want unavailable", err)
	}
	if err := store.Close(); err != nil {
		t.Errorf("close after a failed Configure: %v", err)
	}
}
