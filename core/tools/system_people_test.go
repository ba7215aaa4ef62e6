package tools_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/people"
	"github.com/ropewalk/ropewalk/core/tools"
	"github.com/ropewalk/ropewalk/internal/testkit/fakepeople"
)

func TestManagingUsersAndWorkspaces(t *testing.T) {
	for name, c := range map[string]struct {
		tool, arguments string
		role            core.Role
		want            string   // contained in the result
		done            []string // the changes that were made
		code            core.Code
	}{
		"the list of users":                   {"manage_users", `{"action":"list"}`, core.RoleAdmin, `"users":[{"id":"ann"`, nil, ""},
		"a role":                              {"manage_users", `{"action":"set_role","user":"ann","role":"admin"}`, core.RoleAdmin, `"orgRole":"admin"`, []string{"role ann admin"}, ""},
		"a role that is left to the provider": {"manage_users", `{"action":"set_role","user":"ann","role":""}`, core.RoleAdmin, `"id":"ann"`, []string{"role ann "}, ""},
		"a missing role":                      {"manage_users", `{"action":"set_role","user":"ann"}`, core.RoleAdmin, "role is missing", nil, ""},
		"an admin who makes an owner":         {"manage_users", `{"action":"set_role","user":"ann","role":"owner"}`, core.RoleAdmin, "", nil, core.CodeForbidden},
		"an admin who demotes an owner":       {"manage_users", `{"action":"set_role","user":"olga","role":"member"}`, core.RoleAdmin, "", nil, core.CodeForbidden},
		"an admin who deletes an owner":       {"manage_users", `{"action":"delete","user":"olga"}`, core.RoleAdmin, "", nil, core.CodeForbidden},
		"an owner who makes another owner":    {"manage_users", `{"action":"set_role","user":"ann","role":"owner"}`, core.RoleOwner, `"owner"`, []string{"role ann owner"}, ""},
		"deleting a user":                     {"manage_users", `{"action":"delete","user":"ann"}`, core.RoleAdmin, `"deleted":true`, []string{"delete ann"}, ""},
		"deleting oneself":                    {"manage_users", `{"action":"delete","user":"me"}`, core.RoleAdmin, "you cannot delete yourself", nil, ""},
		"deleting an unknown user":            {"manage_users", `{"action":"delete","user":"no"}`, core.RoleAdmin, "there is no user no", nil, ""},
		"a caller who is a member":            {"manage_users", `{"action":"list"}`, core.RoleMember, "", nil, core.CodeForbidden},
		"an unknown action":                   {"manage_users", `{"action":"promote"}`, core.RoleAdmin, "", nil, core.CodeInvalidInput},
		"the list of workspaces":              {"manage_workspaces", `{"action":"list"}`, core.RoleAdmin, `"ws_a"`, nil, ""},
		"creating a workspace":                {"manage_workspaces", `{"action":"create","name":"New"}`, core.RoleAdmin, `"ws_new"`, []string{"create New me"}, ""},
		"a workspace without a name":          {"manage_workspaces", `{"action":"create"}`, core.RoleAdmin, "name is missing", nil, ""},
		"renaming a workspace":                {"manage_workspaces", `{"action":"rename","workspace":"ws_a","name":"B"}`, core.RoleAdmin, `"B"`, []string{"rename ws_a B"}, ""},
		"deleting a workspace":                {"manage_workspaces", `{"action":"delete","workspace":"ws_a"}`, core.RoleAdmin, `"deleted":true`, []string{"drop ws_a"}, ""},
		"deleting without a workspace":        {"manage_workspaces", `{"action":"delete"}`, core.RoleAdmin, "workspace is missing", nil, ""},
		"the members of a workspace":          {"manage_workspaces", `{"action":"list_members","workspace":"ws_a"}`, core.RoleAdmin, `"members":[{"user":{"id":"ann"`, nil, ""},
		"adding a member":                     {"manage_workspaces", `{"action":"put_member","workspace":"ws_a","user":"ann"}`, core.RoleAdmin, `"role":"member"`, []string{"put ws_a ann member"}, ""},
		"adding a member by email":            {"manage_workspaces", `{"action":"put_member","workspace":"ws_a","user":"ANN@example.com"}`, core.RoleAdmin, `"user":"ann"`, []string{"put ws_a ann member"}, ""},
		"an unknown email":                    {"manage_workspaces", `{"action":"put_member","workspace":"ws_a","user":"no@example.com"}`, core.RoleAdmin, "no user has the email", nil, ""},
		"adding an admin":                     {"manage_workspaces", `{"action":"put_member","workspace":"ws_a","user":"ann","role":"admin"}`, core.RoleAdmin, `"role":"admin"`, []string{"put ws_a ann admin"}, ""},
		"removing a member":                   {"manage_workspaces", `{"action":"remove_member","workspace":"ws_a","user":"ann"}`, core.RoleAdmin, `"removed":true`, []string{"remove ws_a ann"}, ""},
		"removing without a user":             {"manage_workspaces", `{"action":"remove_member","workspace":"ws_a"}`, core.RoleAdmin, "user is missing", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			store := fakepeople.New(
				core.User{ID: "ann", Email: "ann@example.com", OrgRole: core.RoleMember}, core.User{ID: "olga", OrgRole: core.RoleOwner}, core.User{ID: "me", OrgRole: core.RoleAdmin},
			)
			p := people.New(store, store, hclog.NewNullLogger())
			n := newNamespace(&fakeApps{}, &events{}, nil, tools.ManageUsers(p), tools.ManageWorkspaces(p))
			who := caller("ws_a", c.role)
			who.User.ID = "me"
			got, _, err := n.Call(t.Context(), who, tools.Call{Name: "system__" + c.tool, Arguments: json.RawMessage(c.arguments)})
			if c.code == "" && err != nil || c.code != "" && core.CodeOf(err) != c.code {
				t.Fatalf("the call returned %v", err)
			}
			if plain := strings.ReplaceAll(string(got), `\"`, `"`); !strings.Contains(plain, c.want) || !slices.Equal(store.Done(), c.done) {
				t.Errorf("%s\nchanged %q", got, store.Done())
			}
		})
	}
}
