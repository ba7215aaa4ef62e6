package httpapi

import (
	"errors"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
)

func TestListApps(t *testing.T) {
	h := open(t, newAccess(), nil)
	r := h.do(t, call{method: "GET", path: "/v1/apps"})
	want := `{"apps":[{"name":"echo","bundleName":"@acme/echo","version":"1.0.0","status":"running","type":"plain","toolCount":2,"trustScore":80,` +
		`"ui":{"name":"Echo","icon":"e","primaryView":{"resourceUri":"ui://echo/main"}}},` +
		`{"name":"quiet","bundleName":"@acme/quiet","version":"0.1.0","status":"stopped","type":"plain","toolCount":0,"trustScore":0,"ui":null}]}`
	if r.StatusCode != 200 || r.body != want {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	r = h.do(t, call{method: "GET", path: "/v1/apps", header: map[string]string{"X-Workspace-Id": "ws_second"}})
	if r.body != `{"apps":[]}` {
		t.Errorf("a workspace without apps: %s", r.body)
	}
}

func TestInstall(t *testing.T) {
	h := open(t, newAccess(), nil)
	body := `{"url":"https://mcp.example/","serverName":"mine","transport":{"type":"sse","auth":{"type":"header","name":"X-Key","value":"s3cret"},"headers":{"X-A":"b"}},"env":{"K":"v4lue"},"later":1}`
	r := h.do(t, call{method: "POST", path: "/v1/apps/install", body: body})
	if r.StatusCode != 200 || r.json(t)["name"] != "new" || r.json(t)["status"] != "running" || strings.Contains(r.body, "s3cret") {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	got := h.apps.installed[0]
	if got.URL != "https://mcp.example/" || got.ServerName != "mine" || got.Transport.Type != "sse" || got.Transport.Auth.Type != "header" ||
		got.Transport.Auth.Name != "X-Key" || got.Transport.Auth.Value.Reveal() != "s3cret" || got.Transport.Headers["X-A"].Reveal() != "b" || got.Env["K"].Reveal() != "v4lue" {
		t.Errorf("the manager was called with %+v", got)
	}
}

func TestInstallNeedsExactlyOneSource(t *testing.T) {
	h := open(t, newAccess(), nil)
	for _, body := range []string{
		`{}`, `{"serverName":"x"}`, `{"name":"","path":"","url":""}`, `{"name":"a","path":"/b"}`,
		`{"name":"a","url":"https://c.example"}`, `{"path":"/b","url":"https://c.example"}`, `{"name":"a","path":"/b","url":"https://c.example"}`,
	} {
		if r := h.do(t, call{method: "POST", path: "/v1/apps/install", body: body}); r.StatusCode != 400 || r.code() != "bad_request" {
			t.Errorf("%s: %d %s", body, r.StatusCode, r.body)
		}
	}
	if len(h.apps.installed) != 0 {
		t.Errorf("the manager was called with %v", h.apps.installed)
	}
}

// TestErrorsInAppRoutes covers each error in the app routes (docs/api.md 3), and an error without a code.
func TestErrorsInAppRoutes(t *testing.T) {
	h := open(t, newAccess(), nil)
	missing := core.Errorf(core.CodeCredentialsRequired, "API_KEY is missing").WithDetails(map[string]any{
		"missing": []map[string]any{{"name": "API_KEY", "title": "API key", "description": "of the service", "sensitive": true}},
	})
	unnamed := errors.New("open /root/secret: permission denied")
	for _, c := range []struct {
		operation, method, path, body string
		err                           error
		status                        int
		code                          string
	}{
		{"install", "POST", "/v1/apps/install", `{"path":"/b"}`, missing, 400, "credentials_required"},
		{"install", "POST", "/v1/apps/install", `{"path":"/b"}`, core.Errorf(core.CodeAlreadyInstalled, "echo is installed"), 409, "already_installed"},
		{"install", "POST", "/v1/apps/install", `{"path":"/b"}`, core.Errorf(core.CodeInstallFailed, "node is not installed"), 500, "install_failed"},
		{"install", "POST", "/v1/apps/install", `{"path":"/b"}`, unnamed, 500, "install_failed"},
		{"uninstall", "DELETE", "/v1/apps/echo", "", core.Errorf(core.CodeProtected, "echo is protected"), 403, "protected"},
		{"uninstall", "DELETE", "/v1/apps/none", "", nil, 404, "not_found"},
		{"uninstall", "DELETE", "/v1/apps/echo", "", core.Errorf(core.CodeUninstallFailed, "disk"), 500, "uninstall_failed"},
		{"uninstall", "DELETE", "/v1/apps/echo", "", unnamed, 500, "uninstall_failed"},
		{"start", "POST", "/v1/apps/none/start", "", nil, 404, "not_found"},
		{"start", "POST", "/v1/apps/echo/start", "", core.Errorf(core.CodeStartFailed, "exit 1"), 500, "start_failed"},
		{"start", "POST", "/v1/apps/echo/start", "", unnamed, 500, "start_failed"},
		{"stop", "POST", "/v1/apps/none/stop", "", nil, 404, "not_found"},
		{"stop", "POST", "/v1/apps/echo/stop", "", core.Errorf(core.CodeStopFailed, "hangs"), 500, "stop_failed"},
		{"stop", "POST", "/v1/apps/echo/stop", "", unnamed, 500, "stop_failed"},
		{"resource", "GET", "/v1/apps/none/resources/primary", "", nil, 404, "not_found"},
		{"resource", "GET", "/v1/apps/echo/resources/missing", "", nil, 404, "resource_not_found"},
	} {
		t.Run(c.method+" "+c.path+" "+c.code, func(t *testing.T) {
			h.apps.fail = map[string]error{c.operation: c.err}
			r := h.do(t, call{method: c.method, path: c.path, body: c.body})
			if r.StatusCode != c.status || r.code() != c.code || r.json(t)["message"] == "" || strings.Contains(r.body, "/root/secret") {
				t.Errorf("%d %s", r.StatusCode, r.body)
			}
			if c.code == "credentials_required" && !strings.Contains(r.body, `"details":{"missing":[{`) {
				t.Errorf("%s", r.body)
			}
		})
	}
}

func TestResponsesToUninstallStartAndStop(t *testing.T) {
	h := open(t, newAccess(), nil)
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/v1/apps/quiet/start", `{"name":"quiet","status":"running"}`},
		{"POST", "/v1/apps/echo/stop", `{"name":"echo","status":"stopped"}`},
		{"DELETE", "/v1/apps/echo", `{"name":"echo","uninstalled":true,"dataPreserved":true,"dataPath":"/home/apps/echo"}`},
	} {
		if r := h.do(t, call{method: c.method, path: c.path}); r.StatusCode != 200 || r.body != c.body {
			t.Errorf("%s %s: %d %s", c.method, c.path, r.StatusCode, r.body)
		}
	}
}

func TestInvalidAppNames(t *testing.T) {
	h := open(t, newAccess(), nil)
	for _, name := range []string{"..", "%2e%2e", "a%2Fb", "Echo", "a_b", "a%00", "a b", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "é"} {
		for _, c := range []call{{method: "DELETE", path: "/v1/apps/" + name}, {method: "POST", path: "/v1/apps/" + name + "/start"}, {method: "POST", path: "/v1/apps/" + name + "/stop"}, {method: "GET", path: "/v1/apps/" + name + "/resources/primary"}} {
			c.path = strings.ReplaceAll(c.path, " ", "%20")
			if r := h.do(t, c); r.StatusCode != 404 && r.StatusCode != 400 {
				t.Errorf("%s %s: %d %s", c.method, c.path, r.StatusCode, r.body)
			}
		}
	}
}

// TestOnlyAdminsManageApps checks which callers may do what, and that a refused request never reaches the manager.
func TestOnlyAdminsManageApps(t *testing.T) {
	h := open(t, newAccess(), nil)
	h.access.user("orgadmin", core.RoleAdmin, core.Workspace{ID: core.DefaultWorkspaceID, Role: core.RoleAdmin})
	h.access.user("wsadmin", core.RoleMember, core.Workspace{ID: core.DefaultWorkspaceID, Role: core.RoleAdmin})
	h.access.user("member", core.RoleMember, core.Workspace{ID: core.DefaultWorkspaceID, Role: core.RoleMember})
	requests := map[string]call{
		"path":      {method: "POST", path: "/v1/apps/install", body: `{"path":"/b"}`},
		"name":      {method: "POST", path: "/v1/apps/install", body: `{"name":"@acme/b"}`},
		"url":       {method: "POST", path: "/v1/apps/install", body: `{"url":"https://b.example"}`},
		"start":     {method: "POST", path: "/v1/apps/echo/start"},
		"stop":      {method: "POST", path: "/v1/apps/echo/stop"},
		"uninstall": {method: "DELETE", path: "/v1/apps/echo"},
		"list":      {method: "GET", path: "/v1/apps"},
	}
	for who, may := range map[string]string{
		h.access.key: "path name url start stop uninstall list",
		"orgadmin":   "path name url start stop uninstall list",
		"wsadmin":    "name url start stop uninstall list",
		"member":     "list",
	} {
		for what, c := range requests {
			h.apps.fail = map[string]error{}
			asked := len(h.apps.installed)
			c.header = map[string]string{"Authorization": "Bearer " + who}
			r := h.do(t, c)
			allowed := strings.Contains(" "+may+" ", " "+what+" ")
			if allowed != (r.StatusCode == 200) || (!allowed && (r.StatusCode != 403 || r.code() != "forbidden")) {
				t.Errorf("%s, %s: %d %s", who, what, r.StatusCode, r.body)
			}
			if !allowed && len(h.apps.installed) != asked {
				t.Errorf("%s, %s: the manager was called", who, what)
			}
			if len(h.apps.installed) > asked && h.apps.installed[asked].Restricted != (who == "wsadmin") {
				t.Errorf("%s, %s: the manager was called with %+v", who, what, h.apps.installed[asked])
			}
		}
	}
}

func TestOnlyAdminsSeeTheLastOutputOfAnApp(t *testing.T) {
	h := open(t, newAccess(), nil)
	h.apps.apps[core.DefaultWorkspaceID][0].LastOutput = []string{"password=hunter2"}
	h.access.user("alice", core.RoleMember, core.Workspace{ID: core.DefaultWorkspaceID, Role: core.RoleMember})
	for _, path := range []string{"/v1/workspace", "/v1/apps", "/v1/apps/echo"} {
		for who, sees := range map[string]bool{h.access.key: true, "alice": false} {
			r := h.do(t, call{method: "GET", path: path, header: map[string]string{"Authorization": "Bearer " + who}})
			if r.StatusCode != 200 && sees || strings.Contains(r.body, "hunter2") != sees {
				t.Errorf("%s as %s: %d %s", path, who, r.StatusCode, r.body)
			}
		}
	}
}
