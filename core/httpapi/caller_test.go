package httpapi

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ropewalk/ropewalk/core"
)

// public reports whether a route accepts unauthenticated requests.
func public(path string) bool {
	switch path {
	case "/v1/auth/login", "/v1/auth/authorize", "/v1/auth/callback", "/v1/auth/device", "/v1/auth/device/answer", "/v1/auth/backchannel-logout", "/v1/health", "/v1/bundles/health",
		"/v1/accounts/link", "/v1/accounts/callback", "/v1/accounts/client":
		return true
	}
	return false
}

func concrete(path string) string {
	members := "/v1/workspaces/" + core.DefaultWorkspaceID + "/members" // a workspace admin manages only the members of that workspace
	return strings.NewReplacer("/v1/workspaces/:id/members", members, ":name", "echo", "*", "primary").Replace(path)
}

func TestEveryRouteExceptThePublicOnesReturns401WithAnEmptyBody(t *testing.T) {
	h := open(t, newAccess(), nil)
	for _, r := range h.routes() {
		for _, header := range []map[string]string{{"Authorization": anonymous}, {"Authorization": "Bearer wrong"}, {"Authorization": anonymous, "Cookie": "service_session=wrong"}} {
			got := h.do(t, call{method: r.method, path: concrete(r.path), header: header})
			if r.method == "POST" && r.path == "/v1/accounts/link" { // an HTML page that says where to log in
				if got.StatusCode != 401 || !strings.Contains(got.body, "Log in first") {
					t.Errorf("%s %s with %v: %d %q", r.method, r.path, header, got.StatusCode, got.body)
				}
				continue
			}
			if public(r.path) == (got.StatusCode == 401) || (got.StatusCode == 401 && got.body != "") {
				t.Errorf("%s %s with %v: %d %q", r.method, r.path, header, got.StatusCode, got.body)
			}
		}
	}
}

func TestInDevModeNoCredentialsAreNeeded(t *testing.T) {
	dev := newAccess()
	dev.dev = true
	h := open(t, dev, nil)
	for _, path := range []string{"/v1/apps", "/v1/workspace", "/v1/auth/session"} {
		if r := h.do(t, call{method: "GET", path: path}); r.StatusCode != 200 {
			t.Errorf("%s: %d %s", path, r.StatusCode, r.body)
		}
	}
}

func TestCallersThatCannotBeVerifiedGet503(t *testing.T) {
	h := open(t, newAccess(), nil)
	h.access.down = true
	r := h.do(t, call{method: "GET", path: "/v1/apps"})
	if r.StatusCode != 503 || r.code() != "unavailable" || r.Header.Get("Retry-After") != "2" {
		t.Errorf("%d %s %q", r.StatusCode, r.body, r.Header.Get("Retry-After"))
	}
}

func TestTheWorkspaceHeaderChoosesTheWorkspace(t *testing.T) {
	h := open(t, newAccess(), nil)
	h.access.user("alice", core.RoleMember, core.Workspace{ID: "ws_alice", Name: "Alice", Role: core.RoleAdmin})
	for _, c := range []struct {
		name, who, workspace, code, ends string
		status                           int
	}{
		{"no header: the default workspace", h.access.key, "", "", core.DefaultWorkspaceID, 200},
		{"no header: the user's only workspace", "alice", "", "", "ws_alice", 200},
		{"another of the caller's workspaces", h.access.key, "ws_second", "", "ws_second", 200},
		{"another user's workspace", "alice", "ws_second", "workspace_access_denied", "", 403},
		{"a workspace that does not exist", "alice", "ws_none", "workspace_access_denied", "", 403},
		{"not a workspace ID", h.access.key, "default", "bad_request", "", 400},
		{"a path in the ID", h.access.key, "ws_../../x", "bad_request", "", 400},
		{"too long", h.access.key, "ws_" + strings.Repeat("a", 65), "bad_request", "", 400},
		{"an invalid ID without a login", "wrong", "default", "", "", 401},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := h.do(t, call{method: "GET", path: "/v1/workspace", header: map[string]string{"Authorization": "Bearer " + c.who, "X-Workspace-Id": c.workspace}})
			if r.StatusCode != c.status || r.code() != c.code {
				t.Fatalf("%d %s", r.StatusCode, r.body)
			}
			if c.status == 200 && r.json(t)["workspace"].(map[string]any)["id"] != c.ends {
				t.Errorf("%s", r.body)
			}
		})
	}
}

func TestDuplicateCredentialsAreRefused(t *testing.T) {
	h := open(t, newAccess(), nil)
	auth := "Authorization: Bearer " + h.access.key + "\r\n"
	for _, lines := range []string{auth + auth, auth + "X-Workspace-Id: ws_default\r\nX-Workspace-Id: ws_second\r\n"} {
		got := h.rawToEnd(t, "GET /v1/apps HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"+lines+"\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 400 ") || !strings.Contains(got, "more than once") {
			t.Errorf("%s", got)
		}
	}
}

// Packages may keep a caller or a call after the request has ended. fasthttp reuses the memory of requests, so a string
// that was not copied would later hold another user's values.
func TestReusedBuffersNeverContainAnotherCallersValues(t *testing.T) {
	h := open(t, newAccess(), nil)
	const people = 8
	for i := range people {
		name := fmt.Sprintf("user%02d", i)
		h.access.user(name, core.RoleMember, core.Workspace{ID: "ws_" + name, Role: core.RoleAdmin})
	}
	var wg sync.WaitGroup
	for i := range people {
		wg.Go(func() {
			name := fmt.Sprintf("user%02d", i)
			conn, r := dial(t, h.addr)
			for range 50 {
				body := fmt.Sprintf(`{"server":%q,"tool":%q,"arguments":{"who":%q}}`, name, name, name)
				request := fmt.Sprintf("POST /v1/tools/call HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\nX-Workspace-Id: ws_%s\r\nContent-Length: %d\r\n\r\n%s", name, name, len(body), body)
				if status, _ := exchange(t, conn, r, request); status != 200 {
					t.Errorf("%s: %d", name, status)
				}
			}
		})
	}
	wg.Wait()
	if len(h.tools.calls) != people*50 {
		t.Fatalf("%d calls", len(h.tools.calls))
	}
	for i, c := range h.tools.calls {
		who := h.tools.keep[i].User.ID
		if c.Name != who+"__"+who || string(c.Arguments) != `{"who":"`+who+`"}` || h.tools.keep[i].Workspace.ID != "ws_"+who {
			t.Fatalf("the call by %s was stored as %s %s in %s", who, c.Name, c.Arguments, h.tools.keep[i].Workspace.ID)
		}
	}
}

func TestEventsAndViewsTakeTheWorkspaceInTheQuery(t *testing.T) {
	h := open(t, newAccess(), nil)
	view := "/v1/apps/echo/resources/primary?workspace="
	if r := h.do(t, call{method: "GET", path: view + "ws_default"}); r.StatusCode != 200 {
		t.Errorf("a member: %d %s", r.StatusCode, r.body)
	}
	for _, path := range []string{view, "/v1/events?workspace="} {
		if r := h.do(t, call{method: "GET", path: path + "ws_none"}); r.StatusCode != 403 || r.code() != "workspace_access_denied" {
			t.Errorf("%s, not a member: %d %s", path, r.StatusCode, r.body)
		}
		if r := h.do(t, call{method: "GET", path: path + "../x"}); r.StatusCode != 400 {
			t.Errorf("%s, malformed: %d %s", path, r.StatusCode, r.body)
		}
		if r := h.do(t, call{method: "GET", path: path + "ws_second", header: map[string]string{"X-Workspace-Id": "ws_default"}}); r.StatusCode != 400 {
			t.Errorf("%s, with another workspace in the header: %d %s", path, r.StatusCode, r.body)
		}
	}
	if r := h.do(t, call{method: "GET", path: "/v1/apps?workspace=ws_none"}); r.StatusCode != 200 {
		t.Errorf("a route that should ignore ?workspace=: %d", r.StatusCode)
	}
}

func TestAnUnknownMethodIsRefusedWithTheMethodsOfThePath(t *testing.T) {
	h := open(t, newAccess(), nil)
	for _, method := range []string{"TRACE", "PROPFIND"} {
		for path, allow := range map[string]string{"/v1/apps": "GET, HEAD", "/v1/tools/call": "POST"} {
			r := h.do(t, call{method: method, path: path})
			if r.StatusCode != 405 || r.Header.Get("Allow") != allow {
				t.Errorf("%s %s: %d, Allow %q, want %q", method, path, r.StatusCode, r.Header.Get("Allow"), allow)
			}
		}
		if r := h.do(t, call{method: method, path: "/v1/nothing"}); r.StatusCode != 404 {
			t.Errorf("%s on an unknown path: %d", method, r.StatusCode)
		}
	}
}

func TestTheDocumentationListsExactlyThePublicRoutes(t *testing.T) {
	page, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## 2.3 ")
	section, _, ended := strings.Cut(section, "\n## ")
	if !found || !ended {
		t.Fatal("docs/api.md has no section 2.3")
	}
	var listed, served []string
	for _, match := range regexp.MustCompile("`([A-Z]+ /v1/[^`]+)`").FindAllStringSubmatch(section, -1) {
		listed = append(listed, match[1])
	}
	for _, r := range open(t, newAccess(), nil).routes() {
		if public(r.path) {
			served = append(served, r.method+" "+r.path)
		}
	}
	slices.Sort(listed)
	slices.Sort(served)
	if !slices.Equal(listed, served) {
		t.Errorf("docs/api.md 2.3 lists %v\nthe public routes are %v", listed, served)
	}
}
