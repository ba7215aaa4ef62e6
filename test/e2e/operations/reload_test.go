package operations

import (
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

func TestASignalReloadsAsTheCommandDoes(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.Config("features: {toolDiscovery: true}\n"))
	says := func(text string) func() bool {
		return func() bool { return strings.Contains(s.Log.String(), text) }
	}
	hangup := func(yaml, want string) {
		t.Helper()
		harness.WriteFile(t, filepath.Join(s.Home, "ropewalk.yaml"), yaml)
		if err := s.Cmd.Process.Signal(syscall.SIGHUP); err != nil || !testkit.Within(harness.Timeout, says(want)) {
			t.Errorf("SIGHUP: %v; the log does not say %q", err, want)
		}
	}
	hangup("features: {mcpServer: false}\n", "configuration reloaded: changed=[\"features\"]")
	if a := s.Do(t, "GET", "/mcp", nil); a.Status != http.StatusNotFound || a.Body != "Not found" {
		t.Errorf("/mcp, switched off: %d %s", a.Status, a.Body)
	}
	hangup("features: {mcpSever: true}\n", "configuration not reloaded")
	hangup("sessionStore: {adapter: redis, url: \"redis://127.0.0.1:1/0\"}\n", "connection refused")
	if a := s.Do(t, "GET", "/mcp", nil); a.Status != http.StatusNotFound || s.Exited() {
		t.Errorf("/mcp, after reloads that did not pass: %d %s", a.Status, a.Body)
	}
}
