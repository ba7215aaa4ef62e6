package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/postgres"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/sessionstoretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func config(t *testing.T, settings map[string]any) plugins.Config {
	t.Helper()
	raw, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	return plugins.Config{JSON: raw}
}

// open configures a store with the settings and closes it when the test ends.
func open(t *testing.T, settings map[string]any) *postgres.Store {
	t.Helper()
	store := postgres.New()
	if err := store.Configure(t.Context(), config(t, settings)); err != nil {
		t.Fatalf("configure: %v", err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// exec runs statements as the superuser.
func exec(t *testing.T, server *testenv.Postgres, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for _, statement := range statements {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

func count(t *testing.T, server *testenv.Postgres, table string) int {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var n int
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// address returns the server's host and port.
func address(t *testing.T, server *testenv.Postgres) string {
	t.Helper()
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

func TestTheContract(t *testing.T) {
	server := testenv.StartPostgres(t)
	t.Run("direct", func(t *testing.T) {
		t.Parallel()
		proxy, err := kit.NewProxy(address(t, server))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(proxy.Close)
		at := func(host string) map[string]any {
			return map[string]any{"url": strings.Replace(server.URL, address(t, server), host, 1)}
		}
		plugintest.Judge(t, sessionstoretest.Properties(), plugintest.Trial(kit.Quick), sessionstoretest.Subject{
			Store: open(t, at(proxy.Address())), Second: open(t, at(address(t, server))), Durable: true, Backend: proxy,
			Restart: func(context.Context) error { return nil }, // its sessions are only in PostgreSQL
		})
	})
	t.Run("as an executable", func(t *testing.T) {
		t.Parallel()
		testenv.PassesItsKit(t, 0, "sessionstore-postgres", `{"url": "`+strings.Replace(server.URL, address(t, server), "${backend}", 1)+`"}`, "--backend", address(t, server))
	})
}

func TestSchema(t *testing.T) {
	server := testenv.StartPostgres(t)
	t.Run("many servers that start at once make the table once", func(t *testing.T) {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				store := postgres.New()
				if err := store.Configure(t.Context(), config(t, map[string]any{"url": server.URL, "table": "at_once", "timeout": "20s"})); err != nil {
					t.Error(err)
				}
				_ = store.Close()
			})
		}
		wg.Wait()
	})
	t.Run("two servers share sessions in one table only", func(t *testing.T) {
		a, b := open(t, map[string]any{"url": server.URL}), open(t, map[string]any{"url": server.URL})
		exec(t, server, "CREATE SCHEMA mcp")
		other := open(t, map[string]any{"url": server.URL, "table": "mcp.sessions"})
		if err := a.Put(t.Context(), sessionstore.Record{ID: "one", Subject: "somebody"}, time.Minute); err != nil {
			t.Fatal(err)
		}
		if got, err := b.Get(t.Context(), "one"); err != nil || got.Subject != "somebody" {
			t.Errorf("the second server got %+v, %v", got, err)
		}
		if _, err := other.Get(t.Context(), "one"); !errors.Is(err, plugins.ErrNotFound) {
			t.Errorf("the server with another table got %v, want not found", err)
		}
	})
	t.Run("a role that may not create tables uses the existing one, or gets an error that asks for it", func(t *testing.T) {
		exec(t, server, "CREATE ROLE guest LOGIN", "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
		guest := strings.Replace(server.URL, "ropewalk@", "guest@", 1)
		err := postgres.New().Configure(t.Context(), config(t, map[string]any{"url": guest, "table": "absent"}))
		if err == nil || !strings.Contains(err.Error(), `create the table "absent"`) {
			t.Errorf("without the table: %v", err)
		}
		open(t, map[string]any{"url": server.URL, "table": "present"})
		exec(t, server, "GRANT SELECT, INSERT, UPDATE, DELETE ON present TO guest")
		store := open(t, map[string]any{"url": guest, "table": "present"})
		if err := store.Put(t.Context(), sessionstore.Record{ID: "one"}, time.Minute); err != nil {
			t.Errorf("with the table: %v", err)
		}
	})
	t.Run("rows whose lifetime is over are deleted, the others stay", func(t *testing.T) {
		store := open(t, map[string]any{"url": server.URL, "table": "purged", "purgeEvery": "50ms"})
		for i, ttl := range []time.Duration{time.Millisecond, time.Millisecond, time.Hour} {
			if err := store.Put(t.Context(), sessionstore.Record{ID: string(rune('a' + i))}, ttl); err != nil {
				t.Fatal(err)
			}
		}
		tick, late := time.NewTicker(50*time.Millisecond), time.After(time.Minute)
		defer tick.Stop()
		for count(t, server, "purged") != 1 {
			select {
			case <-tick.C:
			case <-late:
				t.Fatalf("%d rows remain, want 1", count(t, server, "purged"))
			}
		}
	})
	t.Run("an id with a NUL is not stored, and not found", func(t *testing.T) {
		store := open(t, map[string]any{"url": server.URL})
		if err := store.Put(t.Context(), sessionstore.Record{ID: "a\x00b"}, time.Minute); !errors.Is(err, plugins.ErrInvalid) {
			t.Errorf("Put: %v", err)
		}
		if _, err := store.Get(t.Context(), "a\x00b"); !errors.Is(err, plugins.ErrNotFound) {
			t.Errorf("Get: %v", err)
		}
		if err := store.Touch(t.Context(), []sessionstore.Touch{{ID: "a\x00b", TTL: time.Minute}}); err != nil {
			t.Errorf("Touch: %v", err)
		}
		if err := store.Delete(t.Context(), "a\x00b"); err != nil {
			t.Errorf("Delete: %v", err)
		}
	})
}
