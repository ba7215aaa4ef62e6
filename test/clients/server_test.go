package clients

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

// server is a running ropewalk.
type server struct {
	url  string
	home string
	key  string // for requests of the test itself; "" in dev mode
	log  *testkit.Log
}

// ropewalk is the executable under test.
var ropewalk testenv.Ropewalk

var listens = regexp.MustCompile(`server listening.*url"?[=:]"?(http://[^\s"]+)`)

// serve starts a server with a configuration on a free port until the test ends. env is beside PATH, HOME and
// LANG, and wins over them.
func serve(t *testing.T, config string, env ...string) *server {
	t.Helper()
	return serveOn(t, 0, config, env...)
}

// serveOn is serve on a port.
func serveOn(t *testing.T, port int, config string, env ...string) *server {
	t.Helper()
	s := &server{home: filepath.Join(t.TempDir(), "home"), log: &testkit.Log{}}
	if err := os.MkdirAll(s.home, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(s.home, "ropewalk.yaml"), config)
	cmd := exec.Command(ropewalk.Path(t), "serve", "--port", strconv.Itoa(port), "--home", s.home)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "LANG=C.UTF-8"}, env...)
	cmd.Stderr = s.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
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

// do sends a request of the test itself, which must succeed.
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

// everything writes a bundle around npm's server-everything and returns its folder.
func everything(t *testing.T) string {
	t.Helper()
	const entry = "node_modules/@modelcontextprotocol/server-everything/dist/index.js"
	dir := filepath.Join(t.TempDir(), "everything")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(testenv.Node(t), "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "manifest.json"), `{"manifest_version":"0.3","name":"@test/everything","version":"1.0.0","description":"d",
		"author":{"name":"test"},"server":{"type":"node","entry_point":"`+entry+`",
		"mcp_config":{"command":"node","args":["${__dirname}/`+entry+`","stdio"]}}}`)
	return dir
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// program runs a program to its end, which must be good, and returns its standard output.
func program(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "LANG=C.UTF-8"}, env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s\n%s", name, args, err, out, &stderr)
	}
	return string(out)
}

func packages(t testing.TB) string { return testenv.Packages(t, filepath.Join("test", "clients")) }
