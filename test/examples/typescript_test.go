package examples

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/sessionstoretest"
)

// sessionStoreTypeScript installs and builds the example and returns its executable.
func sessionStoreTypeScript(t *testing.T) string {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("this test needs %s: install Node 20.11 or newer from your system or nodejs.org", program)
		}
	}
	dir := install(t, "sessionstore-typescript", "node_modules", "package-lock.json", "package.json", "tsconfig.json", "src", "test")
	return filepath.Join(dir, "sessionstore-typescript")
}

func TestTheSessionStoreInTypeScriptKeepsTheContract(t *testing.T) {
	t.Parallel()
	path := sessionStoreTypeScript(t)
	for name, settings := range map[string]string{
		"in the directory of the server": `{}`,
		"in a directory of its own":      fmt.Sprintf(`{"directory": %q, "waitForDisk": false}`, t.TempDir()),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, _ := newHost(t)
			store, err := h.SessionStore(t.Context(), plugin(t, path, settings))
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close(context.Background())
			plugintest.Judge(t, sessionstoretest.Properties(), plugintest.Trial(kit.Quick), sessionstoretest.Subject{Store: store})
		})
	}
}

func TestTheSessionStoreInTypeScriptKeepsItsSessionsWhenItIsKilled(t *testing.T) {
	h, log := newHost(t)
	store, err := h.SessionStore(t.Context(), plugin(t, sessionStoreTypeScript(t), `{}`))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close(context.Background())
	mustHold(t, log, "The store is ready.", `"@level":"info"`, `"waitForDisk":true`, "sessionstore.example")

	var next atomic.Int64
	killUnderCalls(t, h, 5, func(ctx context.Context) error {
		id := fmt.Sprintf("session-%d", next.Add(1))
		if err := store.Put(ctx, sessionstore.Record{ID: id, Subject: id}, time.Minute); err != nil {
			return err
		}
		if err := store.Touch(ctx, []sessionstore.Touch{{ID: id, LastAccessedAt: time.Now(), TTL: time.Minute}}); err != nil {
			return err
		}
		if rec, err := store.Get(ctx, id); err != nil || rec.Subject != id {
			return fmt.Errorf("%s came back as %+v, %w", id, rec, err)
		}
		return nil
	})
	for i := range next.Load() {
		if _, err := store.Get(t.Context(), fmt.Sprintf("session-%d", i+1)); err != nil {
			t.Errorf("session-%d is lost: %v", i+1, err)
		}
	}
}

func TestTwoProcessesOfTheSessionStoreInTypeScriptShareTheirSessions(t *testing.T) {
	t.Parallel()
	path, settings := sessionStoreTypeScript(t), fmt.Sprintf(`{"directory": %q}`, t.TempDir())
	var stores [2]sessionstore.Store
	for i := range stores {
		h, _ := newHost(t)
		store, err := h.SessionStore(t.Context(), plugin(t, path, settings))
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close(context.Background())
		stores[i] = store
	}
	for i := range 20 {
		id := fmt.Sprintf("session-%d", i)
		writer, reader := stores[i%2], stores[(i+1)%2]
		if err := writer.Put(t.Context(), sessionstore.Record{ID: id, Subject: "alice"}, time.Minute); err != nil {
			t.Fatal(err)
		}
		if _, err := reader.Get(t.Context(), id); err != nil {
			t.Errorf("the other process does not see %s: %v", id, err)
		}
		if err := reader.Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if _, err := writer.Get(t.Context(), id); err == nil {
			t.Errorf("the other process does not see that %s was deleted", id)
		}
	}
}

func TestTheSessionStoreInTypeScriptReportsInvalidSettings(t *testing.T) {
	t.Parallel()
	wantProblems(t, plugins.KindSessionStore, sessionStoreTypeScript(t), `{"directoryy": "/tmp", "waitForDisk": "yes", "directory": "sessions"}`,
		`directoryy: is not a setting (did you mean "directory"?)`,
		"waitForDisk: must be true or false, not a string",
		"directory: must be an absolute path",
	)
}

func TestTheSessionStoreInTypeScriptServesOnlyItsServer(t *testing.T) {
	t.Parallel()
	servesOnlyItsServer(t, plugins.KindSessionStore, sessionStoreTypeScript(t))
}
