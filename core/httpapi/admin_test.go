package httpapi

import (
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/routers/gorillamux"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
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
		answer string
		done   string // the expected change
	}{
		{"list users", call{method: "GET", path: "/v1/users"}, `{"users":[` + strings.TrimSuffix(user, "}") + `,"identities":[{"issuer":"https://idp.example","subject":"usr_a"}],"apiKeys":0,"suspended":false}]}`, ""},
		{"merge a user", call{method: "POST", path: "/v1/users/usr_a/merge", body: `{"from":"usr_a"}`}, `{"user":` + user + `}`, "merge usr_a usr_a"},
		{"assign a role", call{method: "PATCH", path: "/v1/users/usr_a", body: `{"orgRole":"admin"}`}, `{"user":` + strings.Replace(user, `"member"`, `"admin"`, 1) + `}`, "role usr_a admin"},
		{"delete a user", call{method: "DELETE", path: "/v1/users/usr_a"}, `{"user":"usr_a","deleted":true}`, "delete usr_a"},
		{"list workspaces", call{method: "GET", path: "/v1/workspaces"}, `{"workspaces":[{"id":"ws_a","name":"A","members":1,"createdAt":"0001-01-01T00:00:00Z"}]}`, ""},
		{"create a workspace", call{method: "POST", path: "/v1/workspaces", body: `{"name":"B"}`}, `{"workspace":{"id":"ws_new","name":"B","role":"admin"}}`, "create B usr_owner"},
		{"rename a workspace", call{method: "PATCH", path: "/v1/workspaces/ws_a", body: `{"name":"B"}`}, `{"workspace":"ws_a","name":"B"}`, "rename ws_a B"},
		{"delete a workspace", call{method: "DELETE", path: "/v1/workspaces/ws_a"}, `{"workspace":"ws_a","deleted":true}`, "drop ws_a"},
		{"list members", call{method: "GET", path: "/v1/workspaces/ws_a/members"}, `{"workspace":"ws_a","members":[{"user":` + user + `,"role":"admin"}]}`, ""},
		{"add a member by email", call{method: "POST", path: "/v1/workspaces/ws_a/members", body: `{"user":"a@example.com"}`}, `{"workspace":"ws_a","user":"usr_a","role":"member"}`, "put ws_a usr_a member"},
		{"remove a member by email", call{method: "DELETE", path: "/v1/workspaces/ws_a/members/a%40example.com"}, `{"workspace":"ws_a","user":"usr_a","removed":true}`, "remove ws_a usr_a"},
		{"show the models", call{method: "GET", path: "/v1/models"}, `{"default":null,"fast":null,"providers":[]}`, ""},
		{"set the models", call{method: "PATCH", path: "/v1/models", body: `{"default":"","fast":""}`}, `{"default":null,"fast":null,"providers":[]}`, ""},
		{"list registries", call{method: "GET", path: "/v1/registries"}, `{"registries":[{"name":"main","adapter":"mcp"}]}`, ""},
		{
			"search registries", call{method: "GET", path: "/v1/registries/search?query=calc&registry=main&limit=5"},
			`{"bundles":[{"registry":"main","name":"calc","description":"","version":"5","trustScore":5}],"failures":[]}`, "",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := open(t, newAccess(), nil)
			r := h.do(t, c.call)
			if r.StatusCode != 200 || r.body != c.answer || strings.Join(h.people.Done(), "\n") != c.done {
				t.Fatalf("%d %s, changed %q, want %s, %q", r.StatusCode, r.body, h.people.Done(), c.answer, c.done)
			}
			checkDocumented(t, router, c.call, r)
		})
	}
}

func TestManagingUsersRequiresAnOrganizationAdmin(t *testing.T) {
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

func TestAWorkspaceAdminManagesOnlyItsMembers(t *testing.T) {
	h := open(t, newAccess(), nil)
	h.access.user("alice", core.RoleMember, core.Workspace{ID: "ws_second", Role: core.RoleAdmin})
	h.access.user("bob", core.RoleMember, core.Workspace{ID: "ws_second", Role: core.RoleMember})
	for _, c := range []struct {
		who, method, path, body string
		status                  int
	}{
		{"alice", "GET", "/v1/workspaces/ws_second/members", "", 200},
		{"alice", "POST", "/v1/workspaces/ws_second/members", `{"user":"a@example.com"}`, 200},
		{"alice", "DELETE", "/v1/workspaces/ws_second/members/usr_a", "", 200},
		{"alice", "GET", "/v1/workspaces/ws_a/members", "", 403},
		{"alice", "POST", "/v1/workspaces/ws_a/members", `{"user":"usr_a","role":"admin"}`, 403},
		{"alice", "DELETE", "/v1/workspaces/ws_a/members/usr_a", "", 403},
		{"bob", "GET", "/v1/workspaces/ws_second/members", "", 403},
		{"bob", "POST", "/v1/workspaces/ws_second/members", `{"user":"usr_a"}`, 403},
	} {
		r := h.do(t, call{method: c.method, path: c.path, body: c.body, header: map[string]string{"Authorization": "Bearer " + c.who}})
		if r.StatusCode != c.status {
			t.Errorf("%s %s %s: %d %s, want %d", c.who, c.method, c.path, r.StatusCode, r.body, c.status)
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
		o.Settings = func() []config.Value { return []config.Value{{Path: "http.port", Value: 1, Source: "default"}} }
	})
	if r := h.do(t, call{method: "GET", path: "/v1/config"}); r.body != `{"settings":[{"path":"http.port","value":1,"source":"default"}]}` {
		t.Errorf("an admin: %d %s", r.StatusCode, r.body)
	}
	if r := h.do(t, call{method: "GET", path: "/v1/config", header: map[string]string{"Authorization": "Bearer lead"}}); r.StatusCode != 403 {
		t.Errorf("an admin of only the workspace: %d %s", r.StatusCode, r.body)
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
		t.Errorf("an admin of only the workspace: %d %s", r.StatusCode, r.body)
	}
}
