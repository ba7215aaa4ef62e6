//go:build unix

package testenv

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// OCIRegistry is a test's own OCI registry.
type OCIRegistry struct {
	*Server
	Addr string // host:port
	Dir  string // where it stores pushed artifacts
}

// StartOCIRegistry starts a registry, which stops when the test ends. settings is YAML that is added to its
// configuration.
func StartOCIRegistry(t testing.TB, settings string) *OCIRegistry {
	t.Helper()
	path := Program(t, "docker-registry")
	for range attempts {
		port := freePort(t)
		r := &OCIRegistry{Addr: address(port), Dir: t.TempDir()}
		config := filepath.Join(t.TempDir(), "config.yml")
		text := fmt.Sprintf("version: 0.1\nlog: {level: warn, accesslog: {disabled: true}}\nstorage: {filesystem: {rootdirectory: %q}}\nhttp: {addr: '127.0.0.1:%s'}\n%s", r.Dir, strconv.Itoa(port), settings)
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r.Server = &Server{t: t, quit: syscall.SIGTERM, ready: func(ctx context.Context) bool { return registryAnswers(ctx, r.Addr) }}
		r.command = func() *exec.Cmd {
			cmd := exec.CommandContext(context.WithoutCancel(t.Context()), path, "serve", config) // Kill stops it
			cmd.Env = []string{"OTEL_TRACES_EXPORTER=none"}
			return cmd
		}
		t.Cleanup(r.Kill)
		if r.start() {
			return r
		}
		t.Logf("docker-registry did not start on port %d, trying another:\n%s", port, r.output)
	}
	t.Fatal("docker-registry did not start")
	return nil
}

// registryAnswers accepts any response, including one that requires a login.
func registryAnswers(ctx context.Context, addr string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/v2/", nil)
	if err != nil {
		return false
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	return res.Body.Close() == nil
}
