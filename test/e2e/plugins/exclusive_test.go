package plugins

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// officialLoad makes calls with the official client at a constant rate until it is stopped. Some calls use sessions
// that stay open, and others use new sessions.
type officialLoad struct {
	s     *harness.Server
	stop  context.CancelFunc
	ended sync.WaitGroup

	mu          sync.Mutex
	calls       int
	opened      int
	failed      []error
	longestCall time.Duration
	longestOpen time.Duration
}

func startOfficialLoad(t *testing.T, s *harness.Server, perSecond, sessions int) *officialLoad {
	t.Helper()
	l := &officialLoad{s: s}
	var open []*mcp.ClientSession
	for range sessions {
		session, err := l.connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = session.Close() })
		open = append(open, session)
	}
	ctx, stop := context.WithCancel(t.Context())
	l.stop = stop
	l.ended.Go(func() {
		pace := time.NewTicker(time.Second / time.Duration(perSecond))
		defer pace.Stop()
		for i := 0; ctx.Err() == nil; i++ {
			<-pace.C
			l.ended.Go(func() { l.call(open[i%len(open)], i) })
		}
	})
	l.ended.Go(func() {
		for ctx.Err() == nil {
			l.open()
		}
	})
	t.Cleanup(l.end)
	return l
}

func (l *officialLoad) connect(ctx context.Context) (*mcp.ClientSession, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "load", Version: "1"}, nil)
	return client.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: l.s.URL + "/mcp/" + harness.Workspace, HTTPClient: &http.Client{}, MaxRetries: -1, DisableStandaloneSSE: true,
	}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
}

// open opens a session, makes a call in it, and closes the session.
func (l *officialLoad) open() {
	ctx, cancel := context.WithTimeout(context.Background(), harness.Timeout)
	defer cancel()
	began := time.Now()
	session, err := l.connect(ctx)
	took := time.Since(began)
	l.mu.Lock()
	l.opened++
	l.longestOpen = max(l.longestOpen, took)
	if err != nil {
		l.failed = append(l.failed, fmt.Errorf("open a session: %w", err))
	}
	l.mu.Unlock()
	if err != nil {
		return
	}
	l.call(session, -1)
	_ = session.Close()
}

func (l *officialLoad) call(session *mcp.ClientSession, i int) {
	ctx, cancel := context.WithTimeout(context.Background(), harness.Timeout)
	defer cancel()
	text, began := fmt.Sprintf("call-%d", i), time.Now()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "sample__echo", Arguments: map[string]any{"text": text}})
	took := time.Since(began)
	if err == nil && (result.IsError || len(result.Content) != 1 || result.Content[0].(*mcp.TextContent).Text != text) {
		err = fmt.Errorf("call %d returned %+v", i, result)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	l.longestCall = max(l.longestCall, took)
	if err != nil {
		l.failed = append(l.failed, err)
	}
}

func (l *officialLoad) end() {
	l.stop()
	l.ended.Wait()
}

func (l *officialLoad) waitForCalls(t *testing.T, calls, sessions int) {
	t.Helper()
	l.mu.Lock()
	calls, sessions = calls+l.calls, sessions+l.opened
	l.mu.Unlock()
	if !testkit.Within(harness.Timeout, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.calls >= calls && l.opened >= sessions
	}) {
		t.Fatalf("timed out waiting for %d calls and %d sessions", calls, sessions)
	}
}

// singleWriter builds the example session store that uses bbolt. It returns a function that copies the executable,
// changes one unused byte, and returns the configuration for the copy.
func singleWriter(t *testing.T) func(build int) string {
	t.Helper()
	dir := t.TempDir()
	built := filepath.Join(dir, "sessionstore-bbolt")
	if err := testenv.Build(t.Context(), filepath.Join(testenv.Root(t), "examples", "sessionstore-bbolt-go"), built, "."); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(built)
	if err != nil {
		t.Fatal(err)
	}
	return func(build int) string {
		path := filepath.Join(dir, fmt.Sprintf("build-%d", build))
		if err := os.WriteFile(path, append(raw, byte(build)), 0o700); err != nil {
			t.Fatal(err)
		}
		sum, err := pluginhost.HashFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("sessionStore: {adapter: bbolt, path: %s, sha256: %s}\n", path, sum)
	}
}

func TestASingleWriterStoreIsReplacedUnderLoadWithoutFailures(t *testing.T) {
	build := singleWriter(t)
	s := harness.Serve(t, harness.Flags("--sample"), harness.Config(build(0)))
	s.WaitForStatus(t, "sample", "running")
	l := startOfficialLoad(t, s, 200, 4)
	l.waitForCalls(t, 200, 5)
	for n := range 3 {
		s.MustReload(t, build(n+1), "sessionStore")
		l.waitForCalls(t, 100, 5)
	}
	if n := strings.Count(s.Log.String(), "plugin suspended"); n != 3 {
		t.Errorf("in %d of 3 replacements, the old process exited first", n)
	}

	broken := strings.Replace(build(9), "{adapter", "{file: missing/folder/sessions.db, adapter", 1)
	if output, err := s.Reload(t, broken); err == nil || !strings.Contains(output, "missing/folder") {
		t.Errorf("a build that cannot open its database: %v %s", err, output)
	}
	l.waitForCalls(t, 100, 5) // the previous plugin is running again
	l.end()
	for _, err := range l.failed {
		t.Errorf("a call failed: %v", err)
	}
	t.Logf("%d calls, %d sessions opened, %d failed; the longest call took %v, and opening a session at most %v",
		l.calls, l.opened, len(l.failed), l.longestCall, l.longestOpen)
}
