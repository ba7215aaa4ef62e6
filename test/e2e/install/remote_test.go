package install

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// remote starts server-everything behind an endpoint that requires the given headers. It returns the endpoint's
// address.
func remote(t *testing.T, transport string, wants map[string]string) string {
	t.Helper()
	port := harness.FreePort(t)
	address := "127.0.0.1:" + port
	output := &testkit.Log{}
	cmd := exec.Command("node", filepath.Join(testenv.Node(t), harness.EntryPoint(harness.Everything)), transport)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "PORT=" + port}
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if !testkit.Within(harness.Timeout, func() bool {
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			c.Close()
		}
		return err == nil
	}) {
		t.Fatalf("server-everything did not start to listen:\n%s", output)
	}

	forward := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: address})
	}}
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range wants {
			if r.Header.Get(name) != value {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		endpoint.CloseClientConnections()
		endpoint.Close()
	})
	return endpoint.URL
}

func TestRemoteServersAreInstalledAsApps(t *testing.T) {
	t.Parallel()
	const secret = "s3cret-of-the-remote"
	for name, c := range map[string]struct {
		kind, path, transport string
		wants                 map[string]string
		auth                  map[string]any
	}{
		"streamable-http with a bearer": {
			"streamableHttp", "/mcp", "streamable-http", map[string]string{"Authorization": "Bearer " + secret, "X-Extra": "yes"},
			map[string]any{"type": "bearer", "token": secret},
		},
		"sse with a header": {
			"sse", "/sse", "sse", map[string]string{"X-Api-Key": secret, "X-Extra": "yes"},
			map[string]any{"type": "header", "name": "X-Api-Key", "value": secret},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := harness.Serve(t)
			at := remote(t, c.kind, c.wants) + c.path
			request := map[string]any{
				"url": at, "serverName": "far",
				"transport": map[string]any{"type": c.transport, "auth": map[string]any{"type": "none"}},
			}
			if a := s.Do(t, "POST", "/v1/apps/install", request); a.Status != 500 || a.Object(t)["error"] != "install_failed" || !strings.Contains(a.Body, "401") {
				t.Errorf("without the secret: %d %s", a.Status, a.Body)
			}
			request["transport"] = map[string]any{"type": c.transport, "auth": c.auth, "headers": map[string]any{"X-Extra": "yes"}}
			installed := s.Install(t, request)
			direct := harness.RunScript[harness.ListedTools](t, "typescript.mjs", "stdio", "node", filepath.Join(testenv.Node(t), harness.EntryPoint(harness.Everything)), "stdio")
			if installed.Name != "far" || installed.BundleName != at || installed.ToolCount != len(direct.Tools) || installed.Version == "" {
				t.Errorf("the app is %+v, want %d tools", installed, len(direct.Tools))
			}
			if got := s.Call(t, "far", "echo", map[string]any{"message": "hello"}); got != "Echo: hello" {
				t.Errorf("echo returned %v", got)
			}
			if a := s.Do(t, "GET", "/v1/apps", nil); strings.Contains(a.Body, secret) || strings.Contains(s.Log.String(), secret) {
				t.Error("the API or the log shows the secret")
			}
		})
	}
}
