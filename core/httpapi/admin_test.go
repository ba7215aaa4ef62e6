package httpapi

import (
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/routers/gorillamux"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/adminapi"
)

func TestUsersMembersWorkspacesModelsAndRegistriesAreManagedOverV1(t *testing.T) {
	user := `{"id":"usr_a","email":"a@example.com","displayName":"A","orgRole":"member"}`
	router, err := gorillamux.NewRouter(document(t, open(t, newAccess(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		call   call
		result string // of the system tool
		ran    string
	}{
		{"list users", call{method: "GET", path: "/v1/users"}, `{"users":[` + user + `]}`, `manage_users {"action":"list"}`},
		{"give a role", call{method: "PATCH", path: "/v1/users/usr_a", body: `{"orgRole":"admin"}`}, `{"user":` + user + `}`, `manage_users {"action":"set_role","role":"admin","user":"usr_a"}`},
		{"delete a user", call{method: "DELETE", path: "/v1/users/usr_a"}, `{"user":"usr_a","deleted":true}`, `manage_users {"action":"delete","user":"usr_a"}`},
		{"list workspaces", call{method: "GET", path: "/v1/workspaces"}, `{"workspaces":[{"id":"ws_a","name":"A","members":1,"createdAt":"2026-11-20T08:00:00Z"}]}`, `manage_workspaces {"action":"list"}`},
		{"create a workspace", call{method: "POST", path: "/v1/workspaces", body: `{"name":"A"}`}, `{"workspace":{"id":"ws_a","name":"A","role":"admin"}}`, `manage_workspaces {"action":"create","name":"A"}`},
		{"rename a workspace", call{method: "PATCH", path: "/v1/workspaces/ws_a", body: `{"name":"B"}`}, `{"workspace":"ws_a","name":"B"}`, `manage_workspaces {"action":"rename","name":"B","workspace":"ws_a"}`},
		{"delete a workspace", call{method: "DELETE", path: "/v1/workspaces/ws_a"}, `{"workspace":"ws_a","deleted":true}`, `manage_workspaces {"action":"delete","workspace":"ws_a"}`},
		{"list members", call{method: "GET", path: "/v1/workspaces/ws_a/members"}, `{"workspace":"ws_a","members":[{"user":` + user + `,"role":"admin"}]}`, `manage_workspaces {"action":"list_members","workspace":"ws_a"}`},
		{"add a member by email", call{method: "POST", path: "/v1/workspaces/ws_a/members", body: `{"user":"a@example.com"}`}, `{"workspace":"ws_a","user":"usr_a","role":"member"}`, `manage_workspaces {"action":"put_member","role":"member","user":"a@example.com","workspace":"ws_a"}`},
		{"remove a member by email", call{method: "DELETE", path: "/v1/workspaces/ws_a/members/a%40example.com"}, `{"workspace":"ws_a","user":"usr_a","removed":true}`, `manage_workspaces {"action":"remove_member","user":"a@example.com","workspace":"ws_a"}`},
		{"show the models", call{method: "GET", path: "/v1/models"}, "", ""},
		{"set the models", call{method: "PATCH", path: "/v1/models", body: `{"default":"a:b","fast":""}`}, `{}`, `set_model_config {"default":"a:b","fast":""}`},
		{"list registries", call{method: "GET", path: "/v1/registries"}, "", ""},
		{"search registries", call{method: "GET", path: "/v1/registries/search?query=calc&registry=main&limit=5"}, `{"bundles":[{"registry":"main","name":"@a/calc","description":"","version":"1","trustScore":5}],"failures":[]}`,
			`search {"limit":5,"query":"calc","registry":"main","scope":"registry"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := open(t, newAccess(), nil)
			h.tools.system = c.result
			r := h.do(t, c.call)
			if r.StatusCode != 200 || strings.Join(h.tools.ran, "\n") != c.ran {
				t.Fatalf("%d %s, ran %q, want %q", r.StatusCode, r.body, h.tools.ran, c.ran)
			}
			hold(t, router, c.call, r)
		})
	}
}

func TestManagingPeopleTakesAnAdminOfTheOrganization(t *testing.T) {
	h := open(t, newAccess(), nil)
	h.access.user("alice", core.RoleMember, core.Workspace{ID: "ws_second", Role: core.RoleAdmin})
	for _, c := range []call{
		{method: "GET", path: "/v1/users"}, {method: "DELETE", path: "/v1/users/usr_a"}, {method: "GET", path: "/v1/workspaces"},
		{method: "POST", path: "/v1/workspaces", body: `{"name":"x"}`}, {method: "PATCH", path: "/v1/models", body: `{}`},
	} {
		c.header = map[string]string{"Authorization": "Bearer alice"}
		if r := h.do(t, c); r.StatusCode != 403 || r.code() != "forbidden" {
			t.Errorf("%s %s: %d %s", c.method, c.path, r.StatusCode, r.body)
		}
	}
}

func TestToolsAreListedWithTheirSchemasAndFilteredByServerAndText(t *testing.T) {
	h := open(t, newAccess(), nil)
	for path, want := range map[string]string{
		"/v1/tools":                          "calc__add files__read system__status",
		"/v1/tools?server=calc":              "calc__add",
		"/v1/tools?search=READS%20file":      "files__read",
		"/v1/tools?server=calc&search=reads": "",
	} {
		r := h.do(t, call{method: "GET", path: path})
		var names []string
		for _, tool := range r.json(t)["tools"].([]any) {
			entry := tool.(map[string]any)
			names = append(names, entry["name"].(string))
			if entry["definition"].(map[string]any)["inputSchema"] == nil {
				t.Errorf("%v has no schema", entry)
			}
		}
		if got := strings.Join(names, " "); r.StatusCode != 200 || got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func TestTheConfigurationIsShownToAdminsOfTheOrganization(t *testing.T) {
	a := newAccess()
	a.user("lead", core.RoleMember, core.Workspace{ID: core.DefaultWorkspaceID, Role: core.RoleAdmin})
	h := open(t, a, func(o *Options) {
		o.Settings = func() []adminapi.Setting { return []adminapi.Setting{{Path: "http.port", Value: 1, Source: "default"}} }
	})
	if r := h.do(t, call{method: "GET", path: "/v1/config"}); r.body != `{"settings":[{"path":"http.port","value":1,"source":"default"}]}` {
		t.Errorf("an admin: %d %s", r.StatusCode, r.body)
	}
	if r := h.do(t, call{method: "GET", path: "/v1/config", header: map[string]string{"Authorization": "Bearer lead"}}); r.StatusCode != 403 {
		t.Errorf("an admin of the workspace alone: %d %s", r.StatusCode, r.body)
	}
}

func TestThePluginsAreShownToAdminsOfTheOrganization(t *testing.T) {
	a := newAccess()
	a.user("lead", core.RoleMember, core.Workspace{ID: core.DefaultWorkspaceID, Role: core.RoleAdmin})
	h := open(t, a, func(o *Options) {
		o.Plugins = func() []adminapi.Plugin {
			return []adminapi.Plugin{{Kind: "auth", Name: "corp", Adapter: "oidc", Version: "1", State: "running", Generation: 2, Since: time.Unix(0, 0).UTC(), Calls: 7, LastError: "signal: killed"}}
		}
	})
	want := `{"plugins":[{"kind":"auth","name":"corp","adapter":"oidc","version":"1","state":"running","generation":2,"since":"1970-01-01T00:00:00Z","degraded":false,"calls":7,"errors":0,"lastError":"signal: killed"}]}`
	if r := h.do(t, call{method: "GET", path: "/v1/plugins"}); r.body != want {
		t.Errorf("an admin: %d %s", r.StatusCode, r.body)
	}
	if r := h.do(t, call{method: "GET", path: "/v1/plugins", header: map[string]string{"Authorization": "Bearer lead"}}); r.StatusCode != 403 {
		t.Errorf("an admin of the workspace alone: %d %s", r.StatusCode, r.body)
	}
}
