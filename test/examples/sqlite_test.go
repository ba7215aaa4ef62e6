package examples

import (
	"context"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

const sqlite = "../../examples/sessionstore-sqlite-go"

// stores is the directory of the built session store, or "" before the first test has built it.
var (
	built  sync.Once
	stores string
)

// sessionStoreGo builds the example, once for all tests, and returns its executable.
func sessionStoreGo(t *testing.T) string {
	t.Helper()
	built.Do(func() {
		dir := filepath.Join(testenv.Root(t), ".cache", "examples")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		defer testenv.Lock(t, dir+".lock")()
		if err := testenv.Build(t.Context(), sqlite, dir+"/sessionstore-sqlite", "."); err != nil {
			t.Fatal(err)
		}
		stores = dir
	})
	if stores == "" {
		t.Fatal("the example was not built: see the first test that failed")
	}
	return filepath.Join(stores, "sessionstore-sqlite")
}

func TestTheSessionStoreInGoPassesPluginTest(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), harness.Binary(t), "plugin", "test", sessionStoreGo(t), "--effort", "quick", "--backend", "none", "--start-timeout", "3m").CombinedOutput()
	wantPassed(t, string(out), err)
}

func TestTheSessionStoreInGoHasFiftyLinesAndImportsOnlyOurSDK(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(sqlite, "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for line := range strings.Lines(string(source)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			lines++
		}
	}
	if lines > 50 {
		t.Errorf("got %d lines of code, want at most 50", lines)
	}
	file, err := parser.ParseFile(token.NewFileSet(), "main.go", source, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if rest, ours := strings.CutPrefix(path, "github.com/ropewalk/ropewalk/"); err != nil || ours && !strings.HasPrefix(rest+"/", "plugins/") {
			t.Errorf("the example imports %s", path)
		}
	}
}

func TestTheSessionStoreInGoKeepsItsSessionsWhenItIsKilled(t *testing.T) {
	h, _ := newHost(t)
	store, err := h.SessionStore(t.Context(), plugin(t, sessionStoreGo(t), `{}`))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close(context.Background())
	var next atomic.Int64
	killUnderCalls(t, h, 3, func(ctx context.Context) error {
		id := fmt.Sprintf("session-%d", next.Add(1))
		return store.Put(ctx, sessionstore.Record{ID: id, Subject: id}, time.Minute)
	})
	for i := range next.Load() {
		id := fmt.Sprintf("session-%d", i+1)
		if rec, err := store.Get(t.Context(), id); err != nil || rec.Subject != id {
			t.Errorf("%s came back as %+v, %v", id, rec, err)
		}
	}
}

func TestAServerRunsRealSessionsOnTheStoreInGo(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, "plugins"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := testenv.Build(t.Context(), sqlite, filepath.Join(home, "plugins", "sessionstore-sqlite"), "."); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "ropewalk.yaml"), []byte("sessionStore: sqlite\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serve(t, home)
	anyone := client{url: s.URL}
	anyone.open(t)
	anyone.callsTheSampleApp(t)
	s.Stop()

	s.Start()
	anyone.url = s.URL
	if got := anyone.reason(t); got != "unavailable" {
		t.Errorf("after a restart of the server, the store no longer knows the session: %s", got)
	}
}
