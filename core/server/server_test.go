package server_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/core/server"
	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/auth/static"
	pluginserver "github.com/ropewalk/ropewalk/plugins/server"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/memory"
)

// The test binary also serves as the shim and as every built-in adapter.
func TestMain(m *testing.M) {
	if len(os.Args) == 5 && os.Args[1] == "plugin" {
		pluginserver.Serve(builtins()[plugins.Kind(os.Args[3])][os.Args[4]]())
		return
	}
	goleak.VerifyTestMain(databases.Around(m),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"), // ends on its own after a few seconds
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),    // one for the whole process
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp/stackless.funcWorker"))      // compression, one for the whole process
}

// databases is the PostgreSQL server that all tests here share if they run on PostgreSQL (testenv.Store).
var databases testenv.Databases

func builtins() pluginhost.Builtins {
	return pluginhost.Builtins{
		plugins.KindSessionStore: {"memory": func() plugins.Plugin { return sessionstore.Plugin(memory.New()) }},
		plugins.KindAuth:         {"static": func() plugins.Plugin { return auth.Plugin(static.New()) }},
	}
}

// testHome is a home with a configuration that the test writes.
type testHome struct {
	t    *testing.T
	home string
	env  config.Environment
}

func newHome(t *testing.T, yaml string) testHome {
	h := testHome{t, t.TempDir(), config.Environment{"PATH": os.Getenv("PATH")}}
	if url := databases.StateURL(t); url != "" {
		h.env[config.EnvStorageURL] = url
	}
	h.write(yaml)
	return h
}

func (h testHome) write(yaml string) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(h.home, "ropewalk.yaml"), []byte(yaml), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

func (h testHome) load() (*config.Config, error) {
	return config.Load(config.Options{Home: h.home, Environment: h.env})
}

func (h testHome) start() (*server.Server, error) {
	c, err := h.load()
	if err != nil {
		h.t.Fatal(err)
	}
	return server.Start(h.t.Context(), server.Options{
		Config: c, Load: h.load, Builtins: builtins(), Version: "test", Logger: hclog.NewNullLogger(),
	})
}

func (h testHome) mustStart() *server.Server {
	h.t.Helper()
	s, err := h.start()
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			h.t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return s
}

func status(t *testing.T, s *server.Server, method, path, body string, headers ...string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

func TestAServerRespondsFromStartToClose(t *testing.T) {
	s := newHome(t, "http: {port: 0}").mustStart()
	if got := status(t, s, "GET", "/v1/health", ""); got != http.StatusOK {
		t.Errorf("health returns %d", got)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "http://")); err == nil {
		_ = conn.Close()
		t.Error("a closed server still listens")
	}
}

func TestAStartThatFailsLeavesNothingBehind(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	port := taken.Addr().(*net.TCPAddr).Port
	for name, c := range map[string]struct{ yaml, says string }{
		"a port that is taken":      {fmt.Sprintf("http: {port: %d}", port), "--port"},
		"an unknown adapter":        {"{http: {port: 0}, auth: {adapter: nobody}}", "nobody"},
		"a setting that is missing": {"{http: {port: 0}, auth: {adapter: static}}", "auth.file"},
		"a setting that is unknown": {"{http: {port: 0}, sessionStore: {adapter: memory, ttl: 5}}", "ropewalk.yaml:1: sessionStore.ttl"},
		"an invalid adapter after a valid one": {
			"{http: {port: 0}, auth: {adapter: static, file: TOKENS}, sessionStore: {adapter: nobody}}", "nobody",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t, "")
			h.write(strings.Replace(c.yaml, "TOKENS", tokens(t), 1))
			_, err := h.start()
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the start returned %v, which should contain %q", err, c.says)
			}
			_, noState := os.Stat(filepath.Join(h.home, "ropewalk.db"))
			if untouched := c.says != "--port" || databases.Required(); untouched != errors.Is(noState, fs.ErrNotExist) {
				t.Errorf("the state: %v", noState) // an invalid configuration must not migrate it
			}
			h.write("http: {port: 0}")
			h.mustStart() // the home is free again; goleak and the census detect goroutines and processes that were left behind
		})
	}
}

// tokens returns the path of a file with alice's token.
func tokens(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	text := "tokens:\n  - {token: the-token-of-alice, subject: alice, expires: 2099-01-01T00:00:00Z}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

func mcpStatus(t *testing.T, s *server.Server, headers ...string) int {
	return status(t, s, "POST", "/mcp", initialize, append(headers, "Content-Type", "application/json",
		"Accept", "application/json, text/event-stream", "X-Workspace-Id", "ws_default")...)
}

func TestAReloadAppliesItsChangesAndReportsThoseThatNeedARestart(t *testing.T) {
	h := newHome(t, "http: {port: 0}")
	s := h.mustStart()
	for _, step := range []struct {
		yaml             string
		changed, restart []string
		mcp              int
	}{
		{"http: {port: 0}", nil, nil, http.StatusOK},
		{"{http: {port: 0}, features: {mcpServer: false}}", []string{"features"}, nil, http.StatusNotFound},
		{"{http: {port: 1}, features: {mcpServer: true}, mcp: {maxSessions: 5}}", []string{"features"}, []string{"http", "mcp"}, http.StatusOK},
		{"{http: {port: 1}, features: {mcpServer: true}, mcp: {maxSessions: 5}}", nil, []string{"http", "mcp"}, http.StatusOK},
		{"{http: {port: 0}, auth: {adapter: static, file: " + tokens(t) + "}}", nil, []string{"auth", "limits"}, http.StatusOK}, // limits apply outside dev mode
	} {
		h.write(step.yaml)
		done, err := s.Reload(t.Context())
		if err != nil || !slices.Equal(done.Changed, step.changed) || !slices.Equal(done.Restart, step.restart) {
			t.Errorf("%s: %+v, %v", step.yaml, done, err)
		}
		if got := mcpStatus(t, s); got != step.mcp {
			t.Errorf("%s: /mcp returns %d, want %d", step.yaml, got, step.mcp)
		}
	}
}

func TestARejectedReloadChangesNothing(t *testing.T) {
	good := "{http: {port: 0}, auth: {adapter: static, audience: any, file: " + tokens(t) + "}, features: {mcpServer: true}}"
	h := newHome(t, good)
	s := h.mustStart()
	const alice = "Bearer the-token-of-alice"
	before := s.Plugins()
	for name, c := range map[string]struct{ yaml, says string }{
		"a file that is not valid YAML": {"http: [", "ropewalk.yaml"},
		"an unknown adapter":            {"{http: {port: 0}, features: {mcpServer: false}, auth: {adapter: nobody}}", "nobody"},
		"an invalid setting":            {"{http: {port: 0}, features: {mcpServer: false}, auth: {adapter: static, file: /nowhere, audience: any}}", "auth.file"},
		"an invalid session store after a valid auth adapter": {
			strings.Replace(good, "features", "sessionStore: {adapter: nobody}, features", 1), "sessionStore",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h.write(c.yaml)
			if done, err := s.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the reload returned %+v, %v, which should contain %q", done, err, c.says)
			}
			if got := mcpStatus(t, s); got != http.StatusUnauthorized {
				t.Errorf("without a token /mcp returns %d", got)
			}
			if got := status(t, s, "GET", "/v1/workspace", "", "Authorization", alice); got != http.StatusOK {
				t.Errorf("alice gets %d", got)
			}
			if now := s.Plugins(); !slices.EqualFunc(now, before, sameGeneration) {
				t.Errorf("the plugins were %+v, are %+v", before, now)
			}
		})
	}
}

func TestTheErrorListsEveryAdapterThatRejectsItsSettings(t *testing.T) {
	h := newHome(t, "auth: {adapter: static, file: 5, audience: any}\nsessionStore: {adapter: memory, ttl: 5}\nregistries:\n  - {name: r, adapter: nobody}\n")
	c, err := h.load()
	if err != nil {
		t.Fatal(err)
	}
	_, started := h.start()
	running := newHome(t, "auth: {adapter: static, audience: any, file: "+tokens(t)+"}\nhttp: {port: 0}\n")
	s := running.mustStart()
	running.write("auth: {adapter: static, file: 5, audience: any}\nsessionStore: {adapter: memory, ttl: 5}\nregistries:\n  - {name: r, adapter: nobody}\n")
	_, reloaded := s.Reload(t.Context())
	_, checked := server.Check(t.Context(), c, builtins(), hclog.NewNullLogger())
	for what, err := range map[string]error{
		"the check": checked, "the start": started, "the reload": reloaded,
	} {
		if err == nil {
			t.Fatalf("%s passes", what)
		}
		for _, want := range []string{"yaml:1: auth.file", "yaml:2: sessionStore.ttl", "yaml:4: registries[0]"} {
			if strings.Count(err.Error(), want) != 1 {
				t.Errorf("%s should contain %q once: %v", what, want, err)
			}
		}
	}
}

// sameGeneration reports whether a plugin is still the same process with the same settings.
func sameGeneration(a, b pluginhost.Status) bool {
	return a.Kind == b.Kind && a.Name == b.Name && a.PID == b.PID && a.Since.Equal(b.Since) && a.Restarts == b.Restarts && a.LastErr == b.LastErr
}
