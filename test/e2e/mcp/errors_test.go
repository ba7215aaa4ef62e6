package mcp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// request is one row in the table of requests to /mcp. says is a part of the response body. After a leading "=", it is
// the whole body.
type request struct {
	what     string
	method   string
	body     any
	headers  []string
	status   int
	wantText string
}

func checkResponses(t *testing.T, s *harness.Server, table []request) {
	t.Helper()
	for _, r := range table {
		t.Run(fmt.Sprintf("%d %s", r.status, r.what), func(t *testing.T) {
			a := s.Do(t, r.method, "/mcp", r.body, r.headers...)
			whole, exact := strings.CutPrefix(r.wantText, "=")
			if a.Status != r.status || exact && a.Body != whole || !exact && !strings.Contains(a.Body, r.wantText) {
				t.Errorf("%d %s", a.Status, a.Body)
			}
			if a.Header.Get("X-Content-Type-Options") != "nosniff" || a.Header.Get("X-Request-Id") == "" {
				t.Errorf("headers %v", a.Header)
			}
		})
	}
}

func TestRequestsThatMCPRefuses(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	session := s.SessionHeader(t)
	const jsonError = `"error":{"code":-32000,`
	checkResponses(t, s, []request{
		{"no workspace, although there is only one", "POST", harness.Initialize, []string{harness.AcceptHeader}, 400, "GET /v1/workspace"},
		{"no workspace on a GET", "GET", nil, []string{harness.AcceptHeader, session}, 400, "X-Workspace-Id"},
		{"no workspace on a DELETE", "DELETE", nil, []string{session}, 400, "X-Workspace-Id"},
		{"a malformed workspace", "POST", harness.Initialize, []string{harness.AcceptHeader, "X-Workspace-Id: default"}, 400, "ws_"},
		{"somebody else's workspace", "POST", harness.Initialize, []string{harness.AcceptHeader, "X-Workspace-Id: ws_others"}, 403, jsonError},
		{"a page of another site", "POST", harness.Initialize, []string{harness.AcceptHeader, harness.WorkspaceHeader, "Origin: https://evil.example"}, 403, "Origin"},
		{"a rebound name", "POST", harness.Initialize, []string{harness.AcceptHeader, harness.WorkspaceHeader, "Host: evil.example"}, 403, "Host"},
		{"an unsupported HTTP method", "PUT", harness.Initialize, []string{harness.AcceptHeader, harness.WorkspaceHeader}, 405, ""},
		{"a body over the limit", "POST", strings.Repeat(" ", 5<<20) + harness.Initialize, []string{harness.AcceptHeader, harness.WorkspaceHeader}, 413, ""},
		{"a body of the wrong type", "POST", harness.Initialize, []string{harness.AcceptHeader, harness.WorkspaceHeader, "Content-Type: text/plain"}, 415, "application/json"},
		{"a client that does not accept streams", "POST", harness.Initialize, []string{"Accept: application/json", harness.WorkspaceHeader}, 406, "text/event-stream"},
		{"a GET that does not accept a stream", "GET", nil, []string{"Accept: application/json", harness.WorkspaceHeader, session}, 406, "text/event-stream"},
		{"no session", "POST", harness.Ping, []string{harness.AcceptHeader, harness.WorkspaceHeader}, 400, `"id":null`},
		{"no session on a GET", "GET", nil, []string{harness.AcceptHeader, harness.WorkspaceHeader}, 400, "Mcp-Session-Id"},
		{"no session on a DELETE", "DELETE", nil, []string{harness.WorkspaceHeader}, 400, "Mcp-Session-Id"},
		{"invalid JSON", "POST", `{"jsonrpc":`, []string{harness.AcceptHeader, harness.WorkspaceHeader, session}, 400, `"code":-32700`},
		{"an unsupported revision", "POST", harness.Ping, []string{harness.AcceptHeader, harness.WorkspaceHeader, session, "Mcp-Protocol-Version: 1999-01-01"}, 400, "2025-06-18"},
		{"a session that never existed", "POST", harness.Ping, []string{harness.AcceptHeader, harness.WorkspaceHeader, "Mcp-Session-Id: NEVERWASSUCHASESSION0000000"}, 404, "=" + harness.SessionNotFound("not_found")},
		{"a stream of a session that never existed", "GET", nil, []string{harness.AcceptHeader, harness.WorkspaceHeader, "Mcp-Session-Id: NEVERWASSUCHASESSION0000000"}, 404, "=" + harness.SessionNotFound("not_found")},
		{"ending an unknown session", "DELETE", nil, []string{harness.WorkspaceHeader, "Mcp-Session-Id: NEVERWASSUCHASESSION0000000"}, 404, "=" + harness.SessionNotFound("not_found")},
		{"an unknown method", "POST", `{"jsonrpc":"2.0","id":1,"method":"nothing"}`, []string{harness.AcceptHeader, harness.WorkspaceHeader, session}, 200, `"code":-32601`},
		{"a ping", "POST", harness.Ping, []string{harness.AcceptHeader, harness.WorkspaceHeader, session}, 200, `=` + `{"jsonrpc":"2.0","id":1,"result":{}}`},
		{"a notification", "POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, []string{harness.AcceptHeader, harness.WorkspaceHeader, session}, 202, "="},
		{"ending the session", "DELETE", nil, []string{harness.WorkspaceHeader, session}, 200, "="},
		{"a session that has ended", "POST", harness.Ping, []string{harness.AcceptHeader, harness.WorkspaceHeader, session}, 404, "=" + harness.SessionNotFound("not_found")},
		{"ending a session that has ended", "DELETE", nil, []string{harness.WorkspaceHeader, session}, 404, "=" + harness.SessionNotFound("not_found")},
	})
	if a := s.Do(t, "PUT", "/mcp", nil, harness.WorkspaceHeader); a.Header.Get("Allow") != "GET, POST, DELETE" {
		t.Errorf("Allow %q", a.Header.Get("Allow"))
	}
}

func TestMCPDoesNotAcceptTheAPIKey(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.Env("SERVICE_API_KEY="+harness.APIKey))
	for _, proof := range []string{"Accept: */*", "Authorization: Bearer " + harness.APIKey, "Authorization: Basic eA=="} {
		for _, method := range []string{"POST", "GET", "DELETE"} {
			a := s.Do(t, method, "/mcp", nil, harness.WorkspaceHeader, harness.AcceptHeader, proof)
			want := `Bearer error="unauthorized", error_description="Authorization required", resource_metadata="` + s.URL + `/.well-known/oauth-protected-resource"`
			if a.Status != 401 || a.Header.Get("WWW-Authenticate") != want {
				t.Errorf("%s with %s: %d %q", method, proof, a.Status, a.Header.Get("WWW-Authenticate"))
			}
		}
	}
	if !strings.Contains(s.Log.String(), "auth.adapter") {
		t.Error("the log does not name the setting that allows access to /mcp")
	}
	for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"} {
		a := s.Do(t, "GET", path, nil, "X-Forwarded-Proto: https")
		o := a.Object(t)
		if resource, _ := o["resource"].(string); a.Status != 200 || !strings.HasPrefix(resource, "https://127.0.0.1:") || harness.ToText(t, o["bearer_methods_supported"]) != `["header"]` {
			t.Errorf("%s behind a proxy: %d %s", path, a.Status, a.Body)
		}
	}
}

func TestMCPReturns404IfTheFeatureIsOff(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.Config("features: {mcpServer: false}\n"))
	for _, method := range []string{"POST", "GET", "DELETE", "PUT"} {
		if a := s.Do(t, method, "/mcp", nil); a.Status != 404 || a.Body != "Not found" {
			t.Errorf("%s: %d %q", method, a.Status, a.Body)
		}
	}
}
