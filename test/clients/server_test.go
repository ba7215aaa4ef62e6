package clients

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// serve starts a server with a configuration. The server stops when the test ends. env overrides its PATH, HOME and
// LANG.
func serve(t *testing.T, config string, env ...string) *harness.Server {
	t.Helper()
	return harness.Serve(t, harness.Config(config), func(s *harness.Server) { s.Environ = append(s.Environ, env...) })
}

// everything writes a bundle that runs the npm package server-everything. It returns the bundle's directory.
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

// program runs a program and returns its standard output. The test fails if the program fails.
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
