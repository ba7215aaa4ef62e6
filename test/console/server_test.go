package console

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

const patience = 90 * time.Second

// server is a running ropewalk.
type server struct {
	url  string
	home string
	key  string // for requests of the test itself; "" in dev mode
	path string // of the executable
	args []string
	cmd  *exec.Cmd
	log  *testkit.Log // of all its processes
}

// ropewalk is the executable under test.
var ropewalk testenv.Ropewalk

var listens = regexp.MustCompile(`url"?[=:]"?(http://[^\s"]+)`)

// serve starts a server with a configuration on a free port until the test ends.
func serve(t *testing.T, config string, args ...string) *server {
	t.Helper()
	return serveWith(t, ropewalk.Path(t), config, args...)
}

// serveWith is serve with another executable.
func serveWith(t *testing.T, path, config string, args ...string) *server {
	t.Helper()
	s := &server{path: path, home: filepath.Join(t.TempDir(), "home")}
	if err := os.MkdirAll(s.home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.home, "ropewalk.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s.args = append([]string{"serve", "--port", "0", "--home", s.home}, args...)
	s.log = &testkit.Log{}
	s.start(t, t.TempDir())
	t.Cleanup(func() {
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		_ = s.cmd.Wait()
		if t.Failed() {
			t.Logf("the log of the server:\n%s", s.log)
		}
	})
	testkit.Eventually(t, "the server listens", func() bool {
		at := listens.FindStringSubmatch(s.log.String())
		if at == nil {
			return false
		}
		s.url = at[1]
		return true
	})
	return s
}

// start starts the process of the server, whose user has a home.
func (s *server) start(t *testing.T, home string) {
	t.Helper()
	s.cmd = exec.Command(s.path, s.args...)
	s.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LANG=C.UTF-8"}
	s.cmd.Stderr = s.log
	if err := s.cmd.Start(); err != nil {
		t.Error(err) // not only the goroutine of the test starts servers
	}
}

// localURL is the address of the server with a name, which browsers treat as they do a secure one.
func (s *server) localURL() string { return strings.Replace(s.url, "127.0.0.1", "localhost", 1) }

// do sends a request of the test itself.
func (s *server) do(t *testing.T, method, path string, body any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if s.key != "" {
		r.Header.Set("Authorization", "Bearer "+s.key)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	content, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		t.Fatalf("%s %s: %d %s %v", method, path, resp.StatusCode, content, err)
	}
	var answer map[string]any
	if err := json.Unmarshal(content, &answer); err != nil {
		t.Fatalf("%s %s: %s", method, path, content)
	}
	return answer
}

// bundle writes a bundle around an npm package of this folder's package.json.
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

// browse runs one of the scripts of this folder against a server, with what it is to know as JSON.
func browse(t *testing.T, script string, s *server, facts map[string]any) {
	t.Helper()
	home, err := os.MkdirTemp("", "rwc") // short: the browser makes sockets in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	if facts == nil {
		facts = map[string]any{}
	}
	facts["url"], facts["profile"] = s.localURL(), filepath.Join(home, "profile")
	facts["chromium"], facts["pictures"] = testenv.Chromium(t), os.Getenv("ROPEWALK_SCREENSHOTS")
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
	cmd.WaitDelay = patience
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	if len(out) > 0 {
		t.Logf("%s", out)
	}
}
