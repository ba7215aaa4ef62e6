package apps

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// demo creates a directory with the script and documents. Every user can read the directory.
func demo(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "demo-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // an app that runs as another user reads it
		t.Fatal(err)
	}
	harness.WriteFile(t, filepath.Join(dir, "s.py"), openerServer)
	harness.WriteFile(t, filepath.Join(dir, "docs", "a.txt"), "a document")
	for path, mode := range map[string]os.FileMode{"docs": 0o755, "s.py": 0o644, "docs/a.txt": 0o644} {
		if err := os.Chmod(filepath.Join(dir, path), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func act(t *testing.T, s *harness.Server, app string, arguments map[string]any) string {
	t.Helper()
	text, _ := s.Call(t, app, "act", arguments).(string)
	return text
}

// decide changes permissions and returns the app's state.
func decide(t *testing.T, s *harness.Server, app, verb, kind, target string) harness.Response {
	t.Helper()
	return s.Do(t, "PATCH", "/v1/apps/"+app+"/permissions", map[string]any{verb: []access{{"kind": kind, "target": target}}})
}

func mustDecide(t *testing.T, s *harness.Server, app, verb, kind, target string) {
	t.Helper()
	if a := decide(t, s, app, verb, kind, target); a.Status != 200 || a.Object(t)["status"] != "running" {
		t.Fatalf("%s --%s %s: %d %s", verb, kind, target, a.Status, a.Body)
	}
}

// waitForDenial waits until the permissions list an access that the sandbox refused.
func waitForDenial(t *testing.T, s *harness.Server, want string) {
	t.Helper()
	testkit.Eventually(t, "the refused access is listed as observed", func() bool {
		a := s.Do(t, "GET", "/v1/apps/mine/permissions", nil)
		return strings.Contains(a.Body, want) && strings.Contains(a.Body, `"observed":true`)
	})
}

// listening starts a service on this machine and returns its port.
func listening(t *testing.T) string {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func serverPort(s *harness.Server) string { return s.URL[strings.LastIndexByte(s.URL, ':')+1:] }

func sameOwner(a, b os.FileInfo) bool {
	x, y := a.Sys().(*syscall.Stat_t), b.Sys().(*syscall.Stat_t)
	return x.Uid == y.Uid && x.Gid == y.Gid
}
