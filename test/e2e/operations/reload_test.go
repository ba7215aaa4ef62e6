package operations

import (
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

func TestSIGHUPReloadsLikeTheCommand(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.Config("features: {toolDiscovery: true}\n"))
	wantText := func(text string) func() bool {
		return func() bool { return strings.Contains(s.Log.String(), text) }
	}
	hangup := func(yaml, want string) {
		t.Helper()
		harness.WriteFile(t, filepath.Join(s.Home, "ropewalk.yaml"), yaml)
		if err := s.Cmd.Process.Signal(syscall.SIGHUP); err != nil || !testkit.Within(harness.Timeout, wantText(want)) {
			t.Errorf("SIGHUP: %v; the log does not contain %q", err, want)
		}
	}
	hangup("features: {mcpServer: false}\n", "configuration reloaded: changed=[\"features\"]")
	if a := s.Do(t, "GET", "/mcp", nil); a.Status != http.StatusNotFound || a.Body != "Not found" {
		t.Errorf("/mcp after it was switched off: %d %s", a.Status, a.Body)
	}
	hangup("features: {mcpSever: true}\n", "configuration not reloaded")
	hangup("sessionStore: {adapter: redis, url: \"redis://127.0.0.1:1/0\"}\n", "connection refused")
	if a := s.Do(t, "GET", "/mcp", nil); a.Status != http.StatusNotFound || s.Exited() {
		t.Errorf("/mcp after rejected reloads: %d %s", a.Status, a.Body)
	}
}

// status returns the exit status of a reload.
func status(err error) int {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	return 0
}

func TestAReloadTurnsTheAccessLogOnAndOff(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.Config("log: {access: false}\n"))
	logged := func(path string, within time.Duration) bool {
		s.Do(t, "GET", path, nil)
		return testkit.Within(within, func() bool { return strings.Contains(s.Log.String(), "path="+path) })
	}
	if logged("/v1/apps", 2*time.Second) {
		t.Fatal("requests should not be logged while log.access is off")
	}
	s.MustReload(t, "log: {access: true}\n", "log")
	if !logged("/v1/tools", harness.Timeout) {
		t.Error("requests should be logged after a reload turns log.access on")
	}
	s.Do(t, "POST", "/v1/tools/call", `{"tool":"system__call_tool","arguments":{"name":"system__search_tools","arguments":{"query":"skills"}}}`)
	if !testkit.Within(harness.Timeout, func() bool { return strings.Contains(s.Log.String(), "tool=system__search_tools") }) {
		t.Errorf("a tool called through another tool should be logged:\n%s", s.Log)
	}
	s.MustReload(t, "log: {access: false}\n", "log")
	if logged("/v1/skills", 2*time.Second) {
		t.Error("requests should not be logged after a reload turns log.access off")
	}
}

// Each of these changes requires a restart. A second reload of the same file reports this again.
func TestAReloadThatNeedsARestartExitsWith3(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.Config("log: {level: info}\n"))
	for _, c := range []struct{ yaml, section string }{
		{"log: {format: json}\n", "log"},
		{"audit: {sinks: [file]}\n", "audit"},
		{"auth: {adapter: static, file: tokens.yaml}\n", "auth"},
		{"apiKey: one-more-long-key-1\n", "apiKey"},
		{"http: {allowedHosts: [tools.example.com]}\n", "http"},
		{"limits: {calls: 7}\n", "limits"},
		{"mcp: {maxSessions: 7}\n", "mcp"},
		{"plugins: {callTimeoutSeconds: 7}\n", "plugins"},
		{"sandbox: {cpu: 2}\n", "sandbox"},
		{"skills: {directories: [more]}\n", "skills"},
		{"storage: {eventRetentionHours: 7}\n", "storage"},
		{"tools: {pin: warn}\n", "tools"},
	} {
		for range 2 {
			output, err := s.Reload(t, c.yaml)
			if status(err) != 3 || !strings.Contains(output, "restart the server to apply "+c.section) || strings.Contains(output, "Applied") {
				t.Errorf("with %sthe exit status is %d: %s", c.yaml, status(err), output)
			}
		}
	}
	output, err := s.Reload(t, "log: {level: warn, format: json}\nfeatures: {delegation: false}\n")
	if status(err) != 3 || !strings.Contains(output, "Applied: features, log") || !strings.Contains(output, "restart the server to apply log\n") {
		t.Errorf("a section that can only partly be applied: %d %s", status(err), output)
	}
	if output, err := s.Reload(t, "log: {level: info}\n"); err != nil || !strings.Contains(output, "Applied: features, log") {
		t.Errorf("reloading the original configuration: %v %s", err, output)
	}
}

func TestAReloadChangesTheScopesThatClientsShouldRequest(t *testing.T) {
	t.Parallel()
	auth := "auth: {adapter: oidc, issuer: \"" + testenv.StartOpenIDProvider(t, "http://127.0.0.1:1/v1/auth/callback").Issuer + "\", organizationId: org_1%s}\n"
	s := harness.Serve(t, harness.Config(fmt.Sprintf(auth, "")))
	challenge := func() string {
		return s.Do(t, "POST", "/mcp", map[string]any{}).Header.Get("Www-Authenticate")
	}
	if got := challenge(); !strings.Contains(got, `scope="openid profile email"`) {
		t.Fatalf("without scopes, the challenge is %q", got)
	}
	s.MustReload(t, fmt.Sprintf(auth, ", scopes: [openid, tools]"), "auth")
	if got := challenge(); !strings.Contains(got, `scope="openid tools"`) {
		t.Errorf("after a reload, the challenge is %q", got)
	}
}
