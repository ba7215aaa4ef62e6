package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// apiKey opens /v1 of the servers that have one.
const apiKey = "e2e-key-0123456789"

// refusal is one row of an error table: a request, and what it is answered with.
type refusal struct {
	what         string // the condition, in words
	method, path string
	body         any
	status       int
	code         string // error; "" for an empty body
	says         string // part of message or details
	headers      []string
}

// holds sends the requests of a table and compares.
func holds(t *testing.T, s *server, always []string, table []refusal) {
	t.Helper()
	for _, r := range table {
		t.Run(fmt.Sprintf("%d %s %s", r.status, r.code, r.what), func(t *testing.T) {
			a := s.do(t, r.method, r.path, r.body, append(always, r.headers...)...)
			if a.status != r.status {
				t.Fatalf("%d %s", a.status, a.body)
			}
			if h := a.header; h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "strict-origin-when-cross-origin" || h.Get("X-Request-Id") == "" {
				t.Errorf("headers %v", h)
			}
			if r.code == "" {
				if a.body != "" {
					t.Errorf("the body is %q", a.body)
				}
				return
			}
			o := a.object(t)
			if message, _ := o["message"].(string); o["error"] != r.code || message == "" || a.header.Get("Content-Type") != "application/json" {
				t.Errorf("%v %s", a.header, a.body)
			}
			if !strings.Contains(a.body, r.says) {
				t.Errorf("%q is not said: %s", r.says, a.body)
			}
		})
	}
}

func TestRefusalsOfTheAPI(t *testing.T) {
	t.Parallel()
	s := serve(t, flag("--sample"), config("features: {bundleManagement: false}\napps: {guarded: {path: "+goBundle(t, "guarded", plain)+", protected: true}}\n"))
	s.reaches(t, "sample", "running")
	s.reaches(t, "guarded", "running")
	needy := bundle(t, map[string]any{
		"name": "@e2e/needy", "server": map[string]any{"type": "binary", "entry_point": "x", "mcp_config": map[string]any{"command": "x", "env": map[string]any{"KEY": "${user_config.api_key}"}}},
		"user_config": map[string]any{"api_key": map[string]any{"type": "string", "title": "API key", "description": "Of the provider.", "required": true, "sensitive": true}},
	})
	const install, call = "/v1/apps/install", "/v1/tools/call"
	holds(t, s, nil, []refusal{
		{"no source", "POST", install, `{}`, 400, "bad_request", "exactly one of name, path, url, npm, pypi and command", nil},
		{"two sources", "POST", install, `{"name":"a","path":"/b"}`, 400, "bad_request", "exactly one of name, path, url, npm, pypi and command", nil},
		{"a field of the wrong type", "POST", install, `{"path":7}`, 400, "bad_request", "path must be a string", nil},
		{"a body that is no object", "POST", install, `[]`, 400, "bad_request", "object", nil},
		{"malformed JSON", "POST", install, `{"path":`, 400, "bad_request", "JSON", nil},
		{"a transport without a url", "POST", install, `{"path":"/b","transport":{"type":"sse"}}`, 400, "bad_request", "transport", nil},
		{"an unknown transport", "POST", install, `{"url":"https://a.example","transport":{"type":"smoke"}}`, 400, "bad_request", "transport.type", nil},
		{"a url that is none", "POST", install, `{"url":"ftp://a.example"}`, 400, "bad_request", "url", nil},
		{"a variable that bundles may not set", "POST", install, map[string]any{"path": goBundle(t, "x", plain), "env": map[string]any{"LD_PRELOAD": "x"}}, 400, "bad_request", "LD_PRELOAD", nil},
		{"a bundle that needs a key", "POST", install, map[string]any{"path": needy}, 400, "credentials_required",
			`"details":{"missing":[{"name":"api_key","title":"API key","description":"Of the provider.","sensitive":true}]}`, nil},
		{"an app of this name is there", "POST", install, map[string]any{"path": goBundle(t, "sample", plain)}, 409, "already_installed", "sample", nil},
		{"the reserved name", "POST", install, map[string]any{"path": goBundle(t, "system", plain)}, 409, "already_installed", "system", nil},
		{"a path that is not there", "POST", install, `{"path":"/does/not/exist"}`, 500, "install_failed", "/does/not/exist", nil},
		{"a bundle that ends at once", "POST", install, map[string]any{"path": goBundle(t, "broken", broken)}, 500, "install_failed", "this bundle is broken", nil},
		{"a name without a registry", "POST", install, `{"name":"@a/b"}`, 500, "install_failed", "registries", nil},

		{"uninstall a protected app", "DELETE", "/v1/apps/guarded", nil, 403, "protected", "guarded", nil},
		{"uninstall what is not there", "DELETE", "/v1/apps/nothing", nil, 404, "not_found", "nothing", nil},
		{"start what is not there", "POST", "/v1/apps/nothing/start", nil, 404, "not_found", "nothing", nil},
		{"stop what is not there", "POST", "/v1/apps/nothing/stop", nil, 404, "not_found", "nothing", nil},
		{"a resource of no app", "GET", "/v1/apps/nothing/resources/primary", nil, 404, "not_found", "nothing", nil},
		{"a resource that is not there", "GET", "/v1/apps/sample/resources/nothing", nil, 404, "resource_not_found", "", nil},
		{"the view of an app without one", "GET", "/v1/apps/guarded/resources/primary", nil, 404, "resource_not_found", "", nil},
		{"a resource that climbs", "GET", "/v1/apps/sample/resources/..%2f..%2fetc%2fpasswd", nil, 400, "bad_request", "", nil},

		{"no tool", "POST", call, `{"server":"sample"}`, 400, "bad_request", "tool is missing", nil},
		{"no server", "POST", call, `{"tool":"echo"}`, 400, "bad_request", "server is missing", nil},
		{"arguments that are no object", "POST", call, `{"tool":"sample__echo","arguments":[]}`, 400, "bad_request", "arguments", nil},
		{"a tool that is not there", "POST", call, `{"server":"sample","tool":"nothing"}`, 404, "tool_not_found", "sample__nothing", nil},
		{"a server that is not there", "POST", call, `{"tool":"nothing__echo"}`, 404, "tool_not_found", "nothing__echo", nil},
		{"a tool whose flag is off", "POST", call, `{"tool":"system__manage_apps"}`, 403, "feature_disabled", "bundleManagement", nil},
		{"arguments against the schema", "POST", call, `{"tool":"sample__echo","arguments":{"text":7}}`, 400, "invalid_input", `"details":{"errors":[{"path":"`, nil},

		{"a malformed workspace", "GET", "/v1/apps", nil, 400, "bad_request", "ws_", []string{"X-Workspace-Id: default"}},
		{"a workspace of others", "GET", "/v1/apps", nil, 403, "workspace_access_denied", "", []string{"X-Workspace-Id: ws_others"}},
		{"a page of another site", "POST", "/v1/apps/sample/stop", nil, 403, "forbidden", "", []string{"Origin: https://evil.example"}},
		{"a rebound name", "GET", "/v1/apps", nil, 403, "forbidden", "", []string{"Host: evil.example"}},
		{"nothing there", "GET", "/v1/nothing", nil, 404, "not_found", "", nil},
		{"no browser login", "GET", "/v1/auth/authorize", nil, 400, "not_configured", "auth.adapter", nil},
		{"a login without a key", "POST", "/v1/auth/login", `{}`, 400, "bad_request", "key", nil},
		{"a login with a key that is no text", "POST", "/v1/auth/login", `{"key":7}`, 400, "bad_request", "key", nil},
		{"a body over 1 MiB", "POST", call, strings.Repeat(" ", 1<<20) + "{}", 413, "payload_too_large", "", nil},
		{"a body of another type", "POST", call, "a=b", 415, "unsupported_media_type", "application/json", []string{"Content-Type: application/x-www-form-urlencoded"}},
	})
	for path, allow := range map[string]string{"/v1/apps/install": "POST", "/v1/apps/sample": "DELETE", "/v1/apps/sample/stop": "POST", "/v1/events": "GET", "/v1/tools/call": "POST"} {
		a := s.do(t, "PUT", path, nil)
		if a.status != 405 || !strings.Contains(strings.Join(a.header.Values("Allow"), ","), allow) || a.object(t)["error"] != "method_not_allowed" {
			t.Errorf("PUT %s: %d Allow %q %s", path, a.status, a.header.Values("Allow"), a.body)
		}
	}
	failure := s.do(t, "POST", call, `{"tool":"sample__fail","arguments":{"reason":"so"}}`)
	if o := failure.object(t); failure.status != 200 || o["isError"] != true || o["result"] != "failed as asked: so" {
		t.Errorf("a tool's own failure: %d %s", failure.status, failure.body)
	}
	if got := s.do(t, "GET", "/v1/health", nil, "X-Request-Id: mine-1").header.Get("X-Request-Id"); got != "mine-1" {
		t.Errorf("the request's own id became %q", got)
	}
}

func TestWithoutAProofNobodyIsLetIn(t *testing.T) {
	t.Parallel()
	s := serve(t, flag("--sample"), env("SERVICE_API_KEY="+apiKey))
	var table []refusal
	for _, route := range []string{
		"POST /v1/auth/logout", "GET /v1/auth/session", "GET /v1/apps", "POST /v1/apps/install", "DELETE /v1/apps/sample", "POST /v1/apps/sample/start",
		"POST /v1/apps/sample/stop", "GET /v1/apps/sample/resources/primary", "POST /v1/tools/call", "GET /v1/events", "GET /v1/workspace",
	} {
		method, path, _ := strings.Cut(route, " ")
		for _, proof := range []string{"Accept: */*", "Authorization: Bearer wrong-key-0123456789", "Authorization: Basic " + apiKey, "Cookie: service_session=made-up"} {
			table = append(table, refusal{what: route + " with " + proof, method: method, path: path, status: 401, headers: []string{proof}})
		}
	}
	table = append(table,
		refusal{what: "login with a wrong key", method: "POST", path: "/v1/auth/login", body: `{"key":"wrong-key-0123456789"}`, status: 401},
		refusal{what: "a wrong bearer beside nothing", method: "GET", path: "/v1/workspace", status: 401, headers: []string{"Authorization: Bearer "}})
	holds(t, s, nil, table)
	for _, path := range []string{"/v1/health", "/v1/bundles/health", "/.well-known/oauth-protected-resource"} {
		if a := s.do(t, "GET", path, nil); a.status != 200 {
			t.Errorf("%s needs no proof: %d", path, a.status)
		}
	}
	if a := s.do(t, "GET", "/v1/apps", nil, "Authorization: Bearer "+apiKey); a.status != 200 {
		t.Errorf("with the key: %d %s", a.status, a.body)
	}
	if a := s.do(t, "GET", "/.well-known/oauth-authorization-server", nil); a.status != 404 {
		t.Errorf("metadata of no provider: %d %s", a.status, a.body)
	}
}

func TestAMemberMayNotInstallFromAPath(t *testing.T) {
	t.Parallel()
	const first, token = "the-first-token-0123456789", "a-members-token-0123456789"
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	write(t, tokens, "tokens:\n  - {token: "+first+", subject: bob, email: bob@example.com, orgRole: member, expires: 2099-01-01T00:00:00Z}\n"+
		"  - {token: "+token+", subject: ada, email: ada@example.com, orgRole: member, expires: 2099-01-01T00:00:00Z}\n")
	s := serve(t, config("auth: {adapter: static, file: "+tokens+", audience: any}\n"))
	if a := s.do(t, "GET", "/v1/workspace", nil, "Authorization: Bearer "+first); a.status != 200 || !strings.Contains(a.body, `"orgRole":"admin"`) {
		t.Fatalf("the first person to log in is not the admin: %d %s", a.status, a.body)
	}
	var who struct {
		Workspace struct{ ID, Role string }
		User      struct{ OrgRole string }
	}
	a := s.do(t, "GET", "/v1/workspace", nil, "Authorization: Bearer "+token)
	if err := json.Unmarshal([]byte(a.body), &who); err != nil || who.Workspace.ID == workspace || who.Workspace.Role != "admin" || who.User.OrgRole != "member" {
		t.Fatalf("the member's own workspace: %d %s", a.status, a.body)
	}
	holds(t, s, []string{"Authorization: Bearer " + token}, []refusal{
		{"a path of the server", "POST", "/v1/apps/install", map[string]any{"path": goBundle(t, "x", plain)}, 403, "forbidden", "organization", nil},
		{"a workspace of others", "GET", "/v1/apps", nil, 403, "workspace_access_denied", "", []string{"X-Workspace-Id: " + workspace}},
		{"another token", "GET", "/v1/apps", nil, 401, "", "", []string{"Authorization: Bearer nobodys-token-0123456789"}},
	})
}

// A disk that takes no more is what this database is made to look like: every write to the
// records of apps fails.
func TestWhatCannotBeRecordedIsNotDone(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.install(t, map[string]any{"path": goBundle(t, "there", plain)})
	s.install(t, map[string]any{"path": goBundle(t, "asleep", plain)})
	if a := s.do(t, "POST", "/v1/apps/asleep/stop", nil); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	empty := s.fillDisk(t)
	holds(t, s, nil, []refusal{
		{"an app is installed", "POST", "/v1/apps/install", map[string]any{"path": goBundle(t, "new", plain)}, 500, "install_failed", "", nil},
		{"an app is uninstalled", "DELETE", "/v1/apps/there", nil, 500, "uninstall_failed", "there", nil},
		{"an app is started", "POST", "/v1/apps/asleep/start", nil, 500, "start_failed", "asleep", nil},
		{"an app is stopped", "POST", "/v1/apps/there/stop", nil, 500, "stop_failed", "there", nil},
	})
	empty()
	if now := s.apps(t); len(now) != 2 || now["there"].Status != "running" || now["asleep"].Status != "stopped" {
		t.Errorf("%+v", now)
	}
	if answer := s.call(t, "there", "echo", map[string]any{"text": "still here"}); answer != "still here" {
		t.Errorf("the tool answered %v", answer)
	}
}
