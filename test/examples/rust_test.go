package examples

import (
	"context"
	"fmt"
	"os"
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
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// sessionStoreRust builds the example and returns its executable.
func sessionStoreRust(t *testing.T) string {
	t.Helper()
	if os.Getenv("ROPEWALK_TEST_RUST") == "" {
		t.Skip("compiling the example in Rust takes minutes: make test-rust runs its tests")
	}
	if _, err := exec.LookPath("cargo"); err != nil {
		t.Fatal("this test needs Rust 1.89 or newer: install cargo from your system or rustup.rs")
	}
	dir := install(t, "sessionstore-rust", "target", "Cargo.lock", "Cargo.toml", "build.rs", "src")
	return filepath.Join(dir, "target", "release", "sessionstore-rust")
}

func TestTheSessionStoreInRustKeepsTheContract(t *testing.T) {
	t.Parallel()
	path := sessionStoreRust(t)
	for name, settings := range map[string]string{
		"in the directory of the server": `{}`,
		"in a directory of its own":      fmt.Sprintf(`{"directory": %q}`, t.TempDir()),
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

// TestTheSessionStoreInRustPassesTheKit runs `ropewalk plugin test`, which also starts and kills processes.
func TestTheSessionStoreInRustPassesTheKit(t *testing.T) {
	t.Parallel()
	path, settings := sessionStoreRust(t), filepath.Join(t.TempDir(), "settings.json")
	if err := os.WriteFile(settings, fmt.Appendf(nil, `{"directory": %q}`, t.TempDir()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), harness.Binary(t), "plugin", "test", path, "--config", settings, "--effort", "quick", "--backend", "none", "--start-timeout", "3m").CombinedOutput(); err != nil {
		t.Errorf("ropewalk plugin test: %v\n%s", err, out)
	}
}

func TestTheSessionStoreInRustKeepsItsSessionsWhenItIsKilled(t *testing.T) {
	path := sessionStoreRust(t)
	h, log := newHost(t)
	store, err := h.SessionStore(t.Context(), plugin(t, path, `{}`))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close(context.Background())
	mustHold(t, log, "The store is ready.", `"@level":"info"`, "sessionstore.example")

	var next atomic.Int64
	killUnderCalls(t, h, 5, func(ctx context.Context) error {
		id := fmt.Sprintf("session-%d", next.Add(1))
		if err := store.Put(ctx, sessionstore.Record{ID: id, Subject: id}, time.Minute); err != nil {
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

func TestTheSessionStoreInRustReportsInvalidSettings(t *testing.T) {
	t.Parallel()
	path := sessionStoreRust(t)
	wantProblems(t, plugins.KindSessionStore, path, `{"directoryy": "/tmp", "directory": 3}`,
		"directory: must be a string, not a number",
		`directoryy: is not a setting (did you mean "directory"?)`,
	)
	wantProblems(t, plugins.KindSessionStore, path, `{"directory": "sessions"}`, "directory: must be an absolute path")
}

func TestTheSessionStoreInRustServesOnlyItsServer(t *testing.T) {
	t.Parallel()
	servesOnlyItsServer(t, plugins.KindSessionStore, sessionStoreRust(t))
}
