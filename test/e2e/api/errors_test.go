package api

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// refusal is a row in a table of refused requests: a request and the expected response.
type refusal struct {
	what         string // the name of the case
	method, path string
	body         any
	status       int
	code         string // the response's error member, or "" if the body is empty
	wantText     string // a part of the message or details
	headers      []string
}

// checkRefusals sends the requests in the table and checks the responses.
func checkRefusals(t *testing.T, s *harness.Server, always []string, table []refusal) {
	t.Helper()
	for _, r := range table {
		t.Run(fmt.Sprintf("%d %s %s", r.status, r.code, r.what), func(t *testing.T) {
			a := s.Do(t, r.method, r.path, r.body, append(always, r.headers...)...)
			if a.Status != r.status {
				t.Fatalf("%d %s", a.Status, a.Body)
			}
			if h := a.Header; h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "strict-origin-when-cross-origin" || h.Get("X-Request-Id") == "" {
				t.Errorf("headers %v", h)
			}
			if r.code == "" {
				if a.Body != "" {
					t.Errorf("the body is %q", a.Body)
				}
				return
			}
			o := a.Object(t)
			if message, _ := o["message"].(string); o["error"] != r.code || message == "" || a.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%v %s", a.Header, a.Body)
			}
			if !strings.Contains(a.Body, r.wantText) {
				t.Errorf("the error does not contain %q: %s", r.wantText, a.Body)
			}
		})
	}
}

func TestRequestsThatTheAPIRefuses(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.Flags("--sample"), harness.Config("features: {bundleManagement: false}\napps: {guarded: {path: "+harness.GoBundle(t, "guarded", harness.Plain)+", protected: true}}\n"))
	s.WaitForStatus(t, "sample", "running")
	s.WaitForStatus(t, "guarded", "running")
	needy := harness.Bundle(t, map[string]any{
		"name": "@e2e/needy", "server": map[string]any{"type": "binary", "entry_point": "x", "mcp_config": map[string]any{"command": "x", "env": map[string]any{"KEY": "${user_config.api_key}"}}},
		"user_config": map[string]any{"api_key": map[string]any{"type": "string", "title": "API key", "description": "Of the provider.", "required": true, "sensitive": true}},
	})
	const install, call = "/v1/apps/install", "/v1/tools/call"
	checkRefusals(t, s, nil, []refusal{
		{"no source", "POST", install, `{}`, 400, "bad_request", "exactly one of name, path, url, npm, pypi and command", nil},
		{"two sources", "POST", install, `{"name":"a","path":"/b"}`, 400, "bad_request", "exactly one of name, path, url, npm, pypi and command", nil},
		{"a field of the wrong type", "POST", install, `{"path":7}`, 400, "bad_request", "path must be a string", nil},
		{"a body that is not an object", "POST", install, `[]`, 400, "bad_request", "object", nil},
		{"malformed JSON", "POST", install, `{"path":`, 400, "bad_request", "JSON", nil},
		{"a transport without a url", "POST", install, `{"path":"/b","transport":{"type":"sse"}}`, 400, "bad_request", "transport", nil},
		{"an unknown transport", "POST", install, `{"url":"https://a.example","transport":{"type":"smoke"}}`, 400, "bad_request", "transport.type", nil},
		{"an invalid url", "POST", install, `{"url":"ftp://a.example"}`, 400, "bad_request", "url", nil},
		{"a variable that bundles may not set", "POST", install, map[string]any{"path": harness.GoBundle(t, "x", harness.Plain), "env": map[string]any{"LD_PRELOAD": "x"}}, 400, "bad_request", "LD_PRELOAD", nil},
		{"a bundle that needs a key", "POST", install, map[string]any{"path": needy}, 400, "credentials_required",
			`"details":{"missing":[{"name":"api_key","title":"API key","description":"Of the provider.","sensitive":true}]}`, nil},
		{"an app with this name exists", "POST", install, map[string]any{"path": harness.GoBundle(t, "sample", harness.Plain)}, 409, "already_installed", "sample", nil},
		{"the reserved name", "POST", install, map[string]any{"path": harness.GoBundle(t, "system", harness.Plain)}, 409, "already_installed", "system", nil},
		{"a path that does not exist", "POST", install, `{"path":"/does/not/exist"}`, 500, "install_failed", "/does/not/exist", nil},
		{"a bundle that exits at once", "POST", install, map[string]any{"path": harness.GoBundle(t, "broken", harness.Broken)}, 500, "install_failed", "this bundle is broken", nil},
		{"a name without a registry", "POST", install, `{"name":"@a/b"}`, 500, "install_failed", "registries", nil},

		{"uninstall a protected app", "DELETE", "/v1/apps/guarded", nil, 403, "protected", "guarded", nil},
		{"uninstall an unknown app", "DELETE", "/v1/apps/nothing", nil, 404, "not_found", "nothing", nil},
		{"start an unknown app", "POST", "/v1/apps/nothing/start", nil, 404, "not_found", "nothing", nil},
		{"stop an unknown app", "POST", "/v1/apps/nothing/stop", nil, 404, "not_found", "nothing", nil},
		{"a resource of an unknown app", "GET", "/v1/apps/nothing/resources/primary", nil, 404, "not_found", "nothing", nil},
		{"a resource that does not exist", "GET", "/v1/apps/sample/resources/nothing", nil, 404, "resource_not_found", "", nil},
		{"the view of an app without one", "GET", "/v1/apps/guarded/resources/primary", nil, 404, "resource_not_found", "", nil},
		{"a resource path with .. in it", "GET", "/v1/apps/sample/resources/..%2f..%2fetc%2fpasswd", nil, 404, "resource_not_found", "control character", nil},

		{"no tool", "POST", call, `{"server":"sample"}`, 400, "bad_request", "tool is missing", nil},
		{"no server", "POST", call, `{"tool":"echo"}`, 400, "bad_request", "server is missing", nil},
		{"arguments that are not an object", "POST", call, `{"tool":"sample__echo","arguments":[]}`, 400, "bad_request", "arguments", nil},
		{"a tool that does not exist", "POST", call, `{"server":"sample","tool":"nothing"}`, 404, "tool_not_found", "sample__nothing", nil},
		{"a server that does not exist", "POST", call, `{"tool":"nothing__echo"}`, 404, "tool_not_found", "nothing__echo", nil},
		{"a tool whose flag is off", "POST", call, `{"tool":"system__manage_apps"}`, 403, "feature_disabled", "bundleManagement", nil},
		{"arguments that do not match the schema", "POST", call, `{"tool":"sample__echo","arguments":{"text":7}}`, 400, "invalid_input", `"details":{"errors":[{"path":"`, nil},

		{"a malformed workspace", "GET", "/v1/apps", nil, 400, "bad_request", "ws_", []string{"X-Workspace-Id: default"}},
		{"somebody else's workspace", "GET", "/v1/apps", nil, 403, "workspace_access_denied", "", []string{"X-Workspace-Id: ws_others"}},
		{"a page on another site", "POST", "/v1/apps/sample/stop", nil, 403, "forbidden", "", []string{"Origin: https://evil.example"}},
		{"a rebound name", "GET", "/v1/apps", nil, 403, "forbidden", "", []string{"Host: evil.example"}},
		{"an unknown path", "GET", "/v1/nothing", nil, 404, "not_found", "", nil},
		{"no browser login", "GET", "/v1/auth/authorize", nil, 400, "not_configured", "auth.adapter", nil},
		{"a login without a key", "POST", "/v1/auth/login", `{}`, 400, "bad_request", "key", nil},
		{"a login with a key that is not text", "POST", "/v1/auth/login", `{"key":7}`, 400, "bad_request", "key", nil},
		{"a body over 1 MiB", "POST", call, strings.Repeat(" ", 1<<20) + "{}", 413, "payload_too_large", "", nil},
		{"a body of the wrong type", "POST", call, "a=b", 415, "unsupported_media_type", "application/json", []string{"Content-Type: application/x-www-form-urlencoded"}},
	})
	for path, allow := range map[string]string{"/v1/apps/install": "POST", "/v1/apps/sample": "DELETE", "/v1/apps/sample/stop": "POST", "/v1/events": "GET", "/v1/tools/call": "POST"} {
		a := s.Do(t, "PUT", path, nil)
		if a.Status != 405 || !strings.Contains(strings.Join(a.Header.Values("Allow"), ","), allow) || a.Object(t)["error"] != "method_not_allowed" {
			t.Errorf("PUT %s: %d Allow %q %s", path, a.Status, a.Header.Values("Allow"), a.Body)
		}
	}
	failure := s.Do(t, "POST", call, `{"tool":"sample__fail","arguments":{"reason":"so"}}`)
	if o := failure.Object(t); failure.Status != 200 || o["isError"] != true || o["result"] != "failed as requested: so" {
		t.Errorf("a tool's own failure: %d %s", failure.Status, failure.Body)
	}
	if got := s.Do(t, "GET", "/v1/health", nil, "X-Request-Id: mine-1").Header.Get("X-Request-Id"); got != "mine-1" {
		t.Errorf("the response has the request ID %q", got)
	}
}

func TestEveryRouteNeedsCredentials(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.Flags("--sample"), harness.Env("SERVICE_API_KEY="+harness.APIKey))
	var table []refusal
	for _, route := range []string{
		"POST /v1/auth/logout", "GET /v1/auth/session", "GET /v1/apps", "POST /v1/apps/install", "DELETE /v1/apps/sample", "POST /v1/apps/sample/start",
		"POST /v1/apps/sample/stop", "GET /v1/apps/sample/resources/primary", "POST /v1/tools/call", "GET /v1/events", "GET /v1/workspace",
	} {
		method, path, _ := strings.Cut(route, " ")
		for _, proof := range []string{"Accept: */*", "Authorization: Bearer wrong-key-0123456789", "Authorization: Basic " + harness.APIKey, "Cookie: service_session=made-up"} {
			table = append(table, refusal{what: route + " with " + proof, method: method, path: path, status: 401, headers: []string{proof}})
		}
	}
	table = append(table,
		refusal{what: "login with an invalid key", method: "POST", path: "/v1/auth/login", body: `{"key":"wrong-key-0123456789"}`, status: 401},
		refusal{what: "an empty bearer token", method: "GET", path: "/v1/workspace", status: 401, headers: []string{"Authorization: Bearer "}})
	checkRefusals(t, s, nil, table)
	for _, path := range []string{"/v1/health", "/v1/bundles/health", "/.well-known/oauth-protected-resource"} {
		if a := s.Do(t, "GET", path, nil); a.Status != 200 {
			t.Errorf("%s without credentials: %d", path, a.Status)
		}
	}
	if a := s.Do(t, "GET", "/v1/apps", nil, "Authorization: Bearer "+harness.APIKey); a.Status != 200 {
		t.Errorf("with the key: %d %s", a.Status, a.Body)
	}
	if a := s.Do(t, "GET", "/.well-known/oauth-authorization-server", nil); a.Status != 404 {
		t.Errorf("metadata without a provider: %d %s", a.Status, a.Body)
	}
}

func TestAMemberMayNotInstallFromAPath(t *testing.T) {
	t.Parallel()
	const first, token = "the-first-token-0123456789", "a-members-token-0123456789"
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	harness.WriteFile(t, tokens, "tokens:\n  - {token: "+first+", subject: bob, email: bob@example.com, orgRole: member, expires: 2099-01-01T00:00:00Z}\n"+
		"  - {token: "+token+", subject: ada, email: ada@example.com, orgRole: member, expires: 2099-01-01T00:00:00Z}\n")
	s := harness.Serve(t, harness.Config("auth: {adapter: static, file: "+tokens+", audience: any}\n"))
	if a := s.Do(t, "GET", "/v1/workspace", nil, "Authorization: Bearer "+first); a.Status != 200 || !strings.Contains(a.Body, `"orgRole":"admin"`) {
		t.Fatalf("the first person to log in should be the admin: %d %s", a.Status, a.Body)
	}
	var who struct {
		Workspace struct{ ID, Role string }
		User      struct{ OrgRole string }
	}
	a := s.Do(t, "GET", "/v1/workspace", nil, "Authorization: Bearer "+token)
	if err := json.Unmarshal([]byte(a.Body), &who); err != nil || who.Workspace.ID == harness.Workspace || who.Workspace.Role != "admin" || who.User.OrgRole != "member" {
		t.Fatalf("the member's own workspace: %d %s", a.Status, a.Body)
	}
	checkRefusals(t, s, []string{"Authorization: Bearer " + token}, []refusal{
		{"a path on the server", "POST", "/v1/apps/install", map[string]any{"path": harness.GoBundle(t, "x", harness.Plain)}, 403, "forbidden", "organization", nil},
		{"somebody else's workspace", "GET", "/v1/apps", nil, 403, "workspace_access_denied", "", []string{"X-Workspace-Id: " + harness.Workspace}},
		{"another token", "GET", "/v1/apps", nil, 401, "", "", []string{"Authorization: Bearer nobodys-token-0123456789"}},
	})
}
