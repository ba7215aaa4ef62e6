package console

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// serve starts a server with a configuration. The server stops when the test ends.
func serve(t *testing.T, config string, args ...string) *harness.Server {
	t.Helper()
	return harness.Serve(t, harness.Config(config), harness.Flags(args...))
}

// localURL returns the server's address with the host name localhost. Browsers treat this name as a secure origin.
func localURL(s *harness.Server) string { return strings.Replace(s.URL, "127.0.0.1", "localhost", 1) }

// bundle writes a bundle that runs an npm package listed in this directory's package.json.
func bundle(t *testing.T, pkg string, extra map[string]any, args ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), strings.TrimPrefix(filepath.Base(pkg), "server-"))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	entry := "node_modules/" + pkg + "/dist/index.js"
	manifest := map[string]any{
		"manifest_version": "0.3", "name": "@examples/" + filepath.Base(dir), "version": "1.0.0", "description": pkg,
		"author": map[string]any{"name": "test"},
		"server": map[string]any{"type": "node", "entry_point": entry, "mcp_config": map[string]any{
			"command": "node", "args": append([]string{"${__dirname}/" + entry}, args...),
		}},
	}
	for key, value := range extra {
		manifest[key] = value
	}
	raw, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "manifest.json"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(packages(t), "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func packages(t testing.TB) string { return testenv.Packages(t, filepath.Join("test", "console")) }

// browse runs a script in this directory against a server. The script gets facts as JSON.
func browse(t *testing.T, script string, s *harness.Server, facts map[string]any) {
	t.Helper()
	home, err := os.MkdirTemp("", "rwc") // a short path, because the browser creates sockets in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	if facts == nil {
		facts = map[string]any{}
	}
	facts["url"], facts["profile"] = localURL(s), filepath.Join(home, "profile")
	facts["chromium"], facts["pictures"] = testenv.Program(t, "chromium"), os.Getenv("ROPEWALK_SCREENSHOTS")
	raw, err := json.Marshal(facts)
	if err != nil {
		t.Fatal(err)
	}
	path, err := filepath.Abs(script)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", path, string(raw))
	cmd.Dir = packages(t)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, "LANG=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = harness.Timeout
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	if len(out) > 0 {
		t.Logf("%s", out)
	}
}
