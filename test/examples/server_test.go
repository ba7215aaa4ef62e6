package examples

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/plugins/auth/authtest"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

func TestAServerRunsRealSessionsOnTheAdapterInPythonAndTheStoreInTypeScript(t *testing.T) {
	t.Parallel()
	provider, err := authtest.NewProvider(newKeys(t))
	if err != nil {
		t.Fatal(err)
	}
	defer provider.Close()
	section := func(name, path, more string) string {
		sum, err := pluginhost.HashFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%s: {adapter: example, path: %q, sha256: %q%s}\n", name, path, sum, more)
	}
	home := t.TempDir()
	settings := section("auth", authPython(t), fmt.Sprintf(", issuer: %q, audience: %q, organizationId: %q, roleClaim: role", provider.Issuer(), provider.Audience, provider.Organization)) +
		section("sessionStore", sessionStoreTypeScript(t), "") + "plugins: {startTimeoutSeconds: 90}\n" // two interpreters start at once
	if err := os.WriteFile(filepath.Join(home, "ropewalk.yaml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}

	s := serve(t, home)
	stranger := client{url: s.URL, token: forged(provider)}
	if status, _, body := stranger.post(t, initialize); status != http.StatusUnauthorized {
		t.Errorf("a forged token gets %d %s", status, body)
	}
	alice := client{url: s.URL, token: provider.Token(map[string]any{"role": []string{"guest", "admin"}})}
	alice.open(t)
	alice.callsTheSampleApp(t)
	s.Stop()

	s.Start()
	alice.url = s.URL
	if got := alice.reason(t); got != "unavailable" {
		t.Errorf("after a restart of the server, the store in TypeScript no longer knows the session: %s", got)
	}
	never := client{url: alice.url, token: alice.token, session: "NEVERWASSUCHASESSION0000000"}
	if got := never.reason(t); got != "not_found" {
		t.Errorf("a session that never existed: %s", got)
	}
	alice.session = ""
	alice.open(t)
	alice.callsTheSampleApp(t)
}

// serve starts a server with the sample app and the given home.
func serve(t *testing.T, home string) *harness.Server {
	t.Helper()
	return harness.Serve(t, func(s *harness.Server) { s.Home = home }, harness.Flags("--sample"))
}

// client is an MCP session over plain HTTP.
type client struct{ url, token, session string }

const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"examples","version":"1"}}}`

func (c *client) open(t *testing.T) {
	t.Helper()
	status, header, body := c.post(t, initialize)
	if c.session = header.Get("Mcp-Session-Id"); status != http.StatusOK || c.session == "" {
		t.Fatalf("initialize: %d %s", status, body)
	}
	if status, _, body := c.post(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); status != http.StatusAccepted {
		t.Fatalf("initialized: %d %s", status, body)
	}
}

// callsTheSampleApp waits until the app responds. The app starts concurrently with the server.
func (c *client) callsTheSampleApp(t *testing.T) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var body string
	for until := time.Now().Add(patience); time.Now().Before(until); <-tick.C {
		_, _, body = c.post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sample__echo","arguments":{"text":"knot"}}}`)
		if strings.Contains(body, `"text":"knot"`) {
			return
		}
	}
	t.Errorf("the sample app returned %s", body)
}

// reason returns the reason why the server does not know the session.
func (c *client) reason(t *testing.T) string {
	t.Helper()
	status, _, body := c.post(t, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	var refusal struct {
		Error struct{ Data struct{ Reason string } }
	}
	if status == http.StatusNotFound && json.Unmarshal([]byte(body), &refusal) == nil {
		return refusal.Error.Data.Reason
	}
	return fmt.Sprintf("%d %s", status, body)
}

func (c *client) post(t *testing.T, message string) (status int, header http.Header, body string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/mcp", bytes.NewReader([]byte(message)))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer " + c.token,
		"X-Workspace-Id": "ws_default", "Mcp-Session-Id": c.session,
	} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(raw)
}
