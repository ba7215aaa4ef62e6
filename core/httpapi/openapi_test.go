package httpapi

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// document returns the OpenAPI document of the running server.
func document(t *testing.T, h *testServer) *openapi3.T {
	t.Helper()
	r := h.do(t, call{method: "GET", path: "/v1/openapi.json"})
	if r.StatusCode != 200 || r.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	doc, err := openapi3.NewLoader().LoadFromData([]byte(r.body))
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestTheOpenAPIDocumentDescribesExactlyTheServersRoutes(t *testing.T) {
	h := open(t, newAccess(), nil)
	doc := document(t, h)
	described := map[string]*openapi3.Operation{}
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			described[method+" "+path] = operation
		}
	}
	served := map[string]string{}
	param := regexp.MustCompile(`:(\w+)`)
	for _, r := range h.routes() {
		path := strings.Replace(param.ReplaceAllString(r.path, "{$1}"), "*", "{path}", 1)
		served[r.method+" "+path] = r.path
	}
	if a, b := slices.Sorted(maps.Keys(described)), slices.Sorted(maps.Keys(served)); !slices.Equal(a, b) {
		t.Errorf("described:\n%v\nserved:\n%v", a, b)
	}
	for name, operation := range described {
		open := operation.Security != nil && len(*operation.Security) == 0
		if open != public(served[name]) {
			t.Errorf("%s: according to the document, it is open: %v", name, open)
		}
		if operation.OperationID == "" || operation.Responses.Default() == nil {
			t.Errorf("%s has no id or no default response", name)
		}
	}
}

func TestTheOpenAPIDocumentListsTheRefusalsForEveryWorkspaceOperation(t *testing.T) {
	doc := document(t, open(t, newAccess(), nil))
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			inWorkspace := slices.ContainsFunc(operation.Parameters, func(p *openapi3.ParameterRef) bool { return p.Value.Name == "X-Workspace-Id" })
			if !inWorkspace || operation.Security != nil { // nil means that the operation needs a login
				continue
			}
			for _, status := range []int{400, 401, 403} {
				if operation.Responses.Status(status) == nil {
					t.Errorf("%s %s does not list %d", method, path, status)
				}
			}
		}
	}
}

func TestTheOpenAPIDocumentListsEveryErrorCode(t *testing.T) {
	doc := document(t, open(t, newAccess(), nil))
	withCode := doc.Components.Schemas["Error"].Value.Properties["error"].Value.Enum
	for _, code := range []core.Code{
		core.CodeBadRequest, core.CodeInvalidInput, core.CodeCredentialsRequired, core.CodeWorkspaceRequired, core.CodeNotConfigured, core.CodeForbidden,
		core.CodeProtected, core.CodeToolHeld, core.CodeApprovalPending, core.CodeApprovalRefused, core.CodeFeatureDisabled, core.CodeWorkspaceDenied, core.CodeNotFound, core.CodeToolNotFound, core.CodeResourceNotFound,
		core.CodeMethodNotAllowed, core.CodeAlreadyInstalled, core.CodeRunInProgress, core.CodeConflict, core.CodeAlreadyAnswered, core.CodePayloadTooLarge, core.CodeUnsupportedMedia, core.CodeRateLimited,
		core.CodeInstallFailed, core.CodeUninstallFailed, core.CodeStartFailed, core.CodeStopFailed, core.CodeUnavailable, core.CodeInternal,
		core.CodeModelNotConfigured, core.CodeProviderAuth, core.CodeProviderOverloaded, core.CodeProviderError, core.CodeEngineError,
	} {
		if !slices.Contains(withCode, any(string(code))) {
			t.Errorf("the document does not contain %s", code)
		}
	}
}

// TestResponsesMatchTheOpenAPIDocument checks successful and failed responses against the document's schemas.
func TestResponsesMatchTheOpenAPIDocument(t *testing.T) {
	missing := core.Errorf(core.CodeCredentialsRequired, "API_KEY is missing").WithDetails(map[string]any{
		"missing": []map[string]any{{"name": "API_KEY", "title": "API key", "description": "", "sensitive": true}},
	})
	invalid := core.Errorf(core.CodeInvalidInput, "m").WithDetails(map[string]any{"errors": []map[string]string{{"path": "/x", "message": "m"}}})
	none := map[string]string{"Authorization": anonymous}
	denied := map[string]string{"X-Workspace-Id": "ws_none"}
	router, err := gorillamux.NewRouter(document(t, open(t, newAccess(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name      string
		call      call
		operation string // the operation of apps.Manager that fails with err, or "tools"
		err       error
		status    int
	}{
		{"login", call{method: "POST", path: "/v1/auth/login", body: `{"key":"the-right-key-0123"}`}, "", nil, 200},
		{"login with an invalid key", call{method: "POST", path: "/v1/auth/login", body: `{"key":"x"}`}, "", nil, 401},
		{"login without a key", call{method: "POST", path: "/v1/auth/login", body: `{}`}, "", nil, 400},
		{"login as plain text", call{method: "POST", path: "/v1/auth/login", body: `x`, header: map[string]string{"Content-Type": "text/plain"}}, "", nil, 415},
		{"login too large", call{method: "POST", path: "/v1/auth/login", body: strings.Repeat("x", maxBody+1)}, "", nil, 413},
		{"logout", call{method: "POST", path: "/v1/auth/logout"}, "", nil, 200},
		{"session", call{method: "GET", path: "/v1/auth/session"}, "", nil, 200},
		{"session without credentials", call{method: "GET", path: "/v1/auth/session", header: none}, "", nil, 401},
		{"authorize", call{method: "GET", path: "/v1/auth/authorize?returnTo=/x"}, "", nil, 302},
		{"authorize with an invalid returnTo", call{method: "GET", path: "/v1/auth/authorize?returnTo=x"}, "", nil, 400},
		{"callback", call{method: "GET", path: "/v1/auth/callback?code=c&state=s"}, "", nil, 302},
		{"apps", call{method: "GET", path: "/v1/apps"}, "", nil, 200},
		{"apps without credentials", call{method: "GET", path: "/v1/apps", header: none}, "", nil, 401},
		{"another workspace's apps", call{method: "GET", path: "/v1/apps", header: denied}, "", nil, 403},
		{"install", call{method: "POST", path: "/v1/apps/install", body: `{"path":"/b","env":{"A":"b"}}`}, "", nil, 200},
		{"install a remote app", call{method: "POST", path: "/v1/apps/install", body: `{"url":"https://a.example","serverName":"a","transport":{"type":"sse","auth":{"type":"bearer","token":"t"},"headers":{"A":"b"}}}`}, "", nil, 200},
		{"install nothing", call{method: "POST", path: "/v1/apps/install", body: `{}`}, "", nil, 400},
		{"install without credentials", call{method: "POST", path: "/v1/apps/install", body: `{"path":"/b"}`}, "install", missing, 400},
		{"install again", call{method: "POST", path: "/v1/apps/install", body: `{"path":"/b"}`}, "install", core.Errorf(core.CodeAlreadyInstalled, "m"), 409},
		{"failed install", call{method: "POST", path: "/v1/apps/install", body: `{"path":"/b"}`}, "install", core.Errorf(core.CodeInstallFailed, "m"), 500},
		{"uninstall", call{method: "DELETE", path: "/v1/apps/echo"}, "", nil, 200},
		{"uninstall a protected app", call{method: "DELETE", path: "/v1/apps/echo"}, "uninstall", core.Errorf(core.CodeProtected, "m"), 403},
		{"uninstall an unknown app", call{method: "DELETE", path: "/v1/apps/none"}, "", nil, 404},
		{"failed uninstall", call{method: "DELETE", path: "/v1/apps/echo"}, "uninstall", core.Errorf(core.CodeUninstallFailed, "m"), 500},
		{"start", call{method: "POST", path: "/v1/apps/echo/start"}, "", nil, 200},
		{"start an unknown app", call{method: "POST", path: "/v1/apps/none/start"}, "", nil, 404},
		{"failed start", call{method: "POST", path: "/v1/apps/echo/start"}, "start", core.Errorf(core.CodeStartFailed, "m"), 500},
		{"stop", call{method: "POST", path: "/v1/apps/echo/stop"}, "", nil, 200},
		{"failed stop", call{method: "POST", path: "/v1/apps/echo/stop"}, "stop", core.Errorf(core.CodeStopFailed, "m"), 500},
		{"a view", call{method: "GET", path: "/v1/apps/echo/resources/primary"}, "", nil, 200},
		{"an unknown view", call{method: "GET", path: "/v1/apps/echo/resources/missing"}, "", nil, 404},
		{"a tool", call{method: "POST", path: "/v1/tools/call", body: `{"server":"a","tool":"b","arguments":{"x":1}}`}, "", nil, 200},
		{"a tool that an app refuses", call{method: "POST", path: "/v1/tools/call", body: `{"tool":"a__b"}`}, "tools", &rpc.Error{Message: "m"}, 200},
		{"an unknown tool", call{method: "POST", path: "/v1/tools/call", body: `{"tool":"a__b"}`}, "tools", core.Errorf(core.CodeToolNotFound, "m"), 404},
		{"a tool that is turned off", call{method: "POST", path: "/v1/tools/call", body: `{"tool":"a__b"}`}, "tools", core.Errorf(core.CodeFeatureDisabled, "m"), 403},
		{"a tool with invalid input", call{method: "POST", path: "/v1/tools/call", body: `{"tool":"a__b"}`}, "tools", invalid, 400},
		{"a tool from a dead app", call{method: "POST", path: "/v1/tools/call", body: `{"tool":"a__b"}`}, "tools", core.Errorf(core.CodeUnavailable, "m"), 503},
		{"changed tools", call{method: "GET", path: "/v1/pins"}, "", nil, 200},
		{"accept a changed tool", call{method: "POST", path: "/v1/pins/pin_1", body: `{"decision":"accept"}`}, "", nil, 200},
		{"refuse a changed tool", call{method: "POST", path: "/v1/pins/pin_1", body: `{"decision":"refuse"}`}, "", nil, 200},
		{"an invalid decision", call{method: "POST", path: "/v1/pins/pin_1", body: `{"decision":"maybe"}`}, "", nil, 400},
		{"no such change", call{method: "POST", path: "/v1/pins/pin_2", body: `{"decision":"accept"}`}, "", nil, 404},
		{"waiting calls", call{method: "GET", path: "/v1/approvals"}, "", nil, 200},
		{"decided calls", call{method: "GET", path: "/v1/approvals?state=decided&limit=1"}, "", nil, 200},
		{"calls in another state", call{method: "GET", path: "/v1/approvals?state=used"}, "", nil, 400},
		{"allow all calls to a tool", call{method: "POST", path: "/v1/approvals/apr_1", body: `{"decision":"always"}`}, "", nil, 200},
		{"standing approvals", call{method: "GET", path: "/v1/approvals/always"}, "", nil, 200},
		{"withdraw a standing approval", call{method: "DELETE", path: "/v1/approvals/always/sta_1"}, "", nil, 200},
		{"withdraw an unknown approval", call{method: "DELETE", path: "/v1/approvals/always/sta_2"}, "", nil, 404},
		{"refuse a call with a reason", call{method: "POST", path: "/v1/approvals/apr_1", body: `{"decision":"refuse","reason":"not today"}`}, "", nil, 200},
		{"approve a call", call{method: "POST", path: "/v1/approvals/apr_1", body: `{"decision":"approve"}`}, "", nil, 200},
		{"refuse a call", call{method: "POST", path: "/v1/approvals/apr_1", body: `{"decision":"refuse"}`}, "", nil, 200},
		{"an invalid decision on a call", call{method: "POST", path: "/v1/approvals/apr_1", body: `{"decision":"accept"}`}, "", nil, 400},
		{"no such call", call{method: "POST", path: "/v1/approvals/apr_2", body: `{"decision":"approve"}`}, "", nil, 404},
		{"a decided call", call{method: "POST", path: "/v1/approvals/apr_3", body: `{"decision":"approve"}`}, "", nil, 409},
		{"a tool call that waits", call{method: "POST", path: "/v1/tools/call", body: `{"tool":"a__b"}`}, "tools", core.Errorf(core.CodeApprovalPending, "m"), 409},
		{"a tool call that was refused", call{method: "POST", path: "/v1/tools/call", body: `{"tool":"a__b"}`}, "tools", core.Errorf(core.CodeApprovalRefused, "m"), 403},
		{"a tool that is held back", call{method: "POST", path: "/v1/tools/call", body: `{"tool":"a__b"}`}, "tools", core.Errorf(core.CodeToolHeld, "m"), 403},
		{"events without credentials", call{method: "GET", path: "/v1/events", header: none}, "", nil, 401},
		{"another workspace's events", call{method: "GET", path: "/v1/events", header: denied}, "", nil, 403},
		{"workspace", call{method: "GET", path: "/v1/workspace"}, "", nil, 200},
		{"set instructions", call{method: "PATCH", path: "/v1/workspace", body: `{"instructions":"Answer in French."}`}, "", nil, 200},
		{"set no instructions", call{method: "PATCH", path: "/v1/workspace", body: `{}`}, "", nil, 400},
		{"set instructions as a non-member", call{method: "PATCH", path: "/v1/workspace", body: `{"instructions":""}`, header: denied}, "", nil, 403},
		{"bootstrap", call{method: "GET", path: "/v1/bootstrap"}, "", nil, 200},
		{"health", call{method: "GET", path: "/v1/health"}, "", nil, 200},
		{"bundles health", call{method: "GET", path: "/v1/bundles/health"}, "", nil, 200},
		{"the document", call{method: "GET", path: "/v1/openapi.json"}, "", nil, 200},
		{"metrics", call{method: "GET", path: "/v1/metrics"}, "", nil, 200},
		{"the configuration", call{method: "GET", path: "/v1/config"}, "", nil, 200},
		{"the configuration for a non-member", call{method: "GET", path: "/v1/config", header: denied}, "", nil, 403},
		{"the plugins", call{method: "GET", path: "/v1/plugins"}, "", nil, 200},
		{"the plugins for a non-member", call{method: "GET", path: "/v1/plugins", header: denied}, "", nil, 403},
		{"the audit trail", call{method: "GET", path: "/v1/audit?limit=5&from=2026-11-20"}, "", nil, 200},
		{"the audit trail for a non-member", call{method: "GET", path: "/v1/audit", header: denied}, "", nil, 403},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := open(t, newAccess(), nil)
			h.access.adapter = true
			if c.operation == "tools" {
				h.tools.err = c.err
			} else if c.operation != "" {
				h.apps.fail[c.operation] = c.err
			}
			r := h.do(t, c.call)
			if r.StatusCode != c.status {
				t.Fatalf("%d %s", r.StatusCode, r.body)
			}
			checkDocumented(t, router, c.call, r)
		})
	}
}

// checkDocumented checks a response, and the request if it succeeded, against the OpenAPI document.
func checkDocumented(t *testing.T, router routers.Router, c call, r reply) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), c.method, "http://localhost"+c.path, strings.NewReader(c.body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	route, params, err := router.FindRoute(req)
	if err != nil {
		t.Fatal(err)
	}
	in := &openapi3filter.RequestValidationInput{
		Request: req, PathParams: params, Route: route,
		Options: &openapi3filter.Options{
			AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true,
			ExcludeResponseBody: strings.HasPrefix(r.Header.Get("Content-Type"), "text/html"), // any text is valid
		},
	}
	if r.StatusCode < 400 {
		if err := openapi3filter.ValidateRequest(t.Context(), in); err != nil {
			t.Errorf("the document rejects a request that the server accepts: %v", err)
		}
	}
	if r.StatusCode == http.StatusUnauthorized && r.body == "" || r.StatusCode == http.StatusFound {
		if route.Operation.Responses.Status(r.StatusCode) == nil {
			t.Errorf("the document does not list %d", r.StatusCode)
		}
		return
	}
	out := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: r.StatusCode, Header: r.Header, Body: io.NopCloser(bytes.NewReader([]byte(r.body))), Options: in.Options,
	}
	if err := openapi3filter.ValidateResponse(t.Context(), out); err != nil {
		t.Errorf("%v\n%s", err, r.body)
	}
	if route.Operation.Responses.Status(r.StatusCode) == nil {
		t.Errorf("the document does not list %d", r.StatusCode)
	}
}
