package tools_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/tools"
)

// people is the users and workspaces of an instance in memory. It notes what was changed.
type people struct {
	users map[string]core.User
	done  []string
}

func (p *people) note(what ...string) error {
	p.done = append(p.done, strings.Join(what, " "))
	return nil
}

func (p *people) Users(context.Context) ([]core.User, error) { return []core.User{p.users["ann"]}, nil }

func (p *people) User(_ context.Context, id string) (core.User, error) {
	u, ok := p.users[id]
	if !ok {
		return u, core.Errorf(core.CodeNotFound, "there is no user %s", id)
	}
	return u, nil
}

func (p *people) SetOrgRole(_ context.Context, id string, role core.Role) error {
	return p.note("role", id, string(role))
}
func (p *people) DeleteUser(_ context.Context, id string) error { return p.note("delete", id) }

func (p *people) AllWorkspaces(context.Context) ([]core.WorkspaceInfo, error) {
	return []core.WorkspaceInfo{{ID: "ws_a"}}, nil
}
func (p *people) CreateWorkspace(_ context.Context, name, admin string) (core.Workspace, error) {
	return core.Workspace{ID: "ws_new", Name: name, Role: core.RoleAdmin}, p.note("create", name, admin)
}
func (p *people) RenameWorkspace(_ context.Context, id, name string) error {
	return p.note("rename", id, name)
}
func (p *people) DeleteWorkspace(_ context.Context, id string) error { return p.note("drop", id) }
func (p *people) Members(context.Context, string) ([]core.Member, error) {
	return []core.Member{{User: p.users["ann"], Role: core.RoleAdmin}}, nil
}
func (p *people) PutMember(_ context.Context, ws, id string, role core.Role) error {
	return p.note("put", ws, id, string(role))
}
func (p *people) DeleteMember(_ context.Context, ws, id string) error {
	return p.note("remove", ws, id)
}
func (p *people) MembersChanged(id string) { _ = p.note("changed", id) }

func newPeople() *people {
	return &people{users: map[string]core.User{
		"ann": {ID: "ann", OrgRole: core.RoleMember}, "olga": {ID: "olga", OrgRole: core.RoleOwner}, "me": {ID: "me", OrgRole: core.RoleAdmin},
	}}
}

func TestManagingUsersAndWorkspaces(t *testing.T) {
	for name, c := range map[string]struct {
		tool, arguments string
		role            core.Role
		want            string   // in the answer
		done            []string // what was changed
		code            core.Code
	}{
		"the list of users":              {"manage_users", `{"action":"list"}`, core.RoleAdmin, `"users":[{"id":"ann"`, nil, ""},
		"a role":                         {"manage_users", `{"action":"set_role","user":"ann","role":"admin"}`, core.RoleAdmin, `"orgRole":"admin"`, []string{"role ann admin", "changed ann"}, ""},
		"a role left to the provider":    {"manage_users", `{"action":"set_role","user":"ann","role":""}`, core.RoleAdmin, `"id":"ann"`, []string{"role ann ", "changed ann"}, ""},
		"no role":                        {"manage_users", `{"action":"set_role","user":"ann"}`, core.RoleAdmin, "role is missing", nil, ""},
		"an admin who makes an owner":    {"manage_users", `{"action":"set_role","user":"ann","role":"owner"}`, core.RoleAdmin, "", nil, core.CodeForbidden},
		"an admin who unmakes an owner":  {"manage_users", `{"action":"set_role","user":"olga","role":"member"}`, core.RoleAdmin, "", nil, core.CodeForbidden},
		"an admin who deletes an owner":  {"manage_users", `{"action":"delete","user":"olga"}`, core.RoleAdmin, "", nil, core.CodeForbidden},
		"an owner who makes one":         {"manage_users", `{"action":"set_role","user":"ann","role":"owner"}`, core.RoleOwner, `"owner"`, []string{"role ann owner", "changed ann"}, ""},
		"a user who is deleted":          {"manage_users", `{"action":"delete","user":"ann"}`, core.RoleAdmin, `"deleted":true`, []string{"delete ann", "changed ann"}, ""},
		"oneself":                        {"manage_users", `{"action":"delete","user":"me"}`, core.RoleAdmin, "nobody can delete themselves", nil, ""},
		"nobody":                         {"manage_users", `{"action":"delete","user":"no"}`, core.RoleAdmin, "there is no user no", nil, ""},
		"a member":                       {"manage_users", `{"action":"list"}`, core.RoleMember, "", nil, core.CodeForbidden},
		"an action that is none":         {"manage_users", `{"action":"promote"}`, core.RoleAdmin, "", nil, core.CodeInvalidInput},
		"the list of workspaces":         {"manage_workspaces", `{"action":"list"}`, core.RoleAdmin, `"ws_a"`, nil, ""},
		"a workspace":                    {"manage_workspaces", `{"action":"create","name":"New"}`, core.RoleAdmin, `"ws_new"`, []string{"create New me", "changed me"}, ""},
		"a workspace without a name":     {"manage_workspaces", `{"action":"create"}`, core.RoleAdmin, "name is missing", nil, ""},
		"another name":                   {"manage_workspaces", `{"action":"rename","workspace":"ws_a","name":"B"}`, core.RoleAdmin, `"B"`, []string{"rename ws_a B", "changed "}, ""},
		"a workspace that goes":          {"manage_workspaces", `{"action":"delete","workspace":"ws_a"}`, core.RoleAdmin, `"deleted":true`, []string{"drop ws_a", "changed "}, ""},
		"which workspace":                {"manage_workspaces", `{"action":"delete"}`, core.RoleAdmin, "workspace is missing", nil, ""},
		"its members":                    {"manage_workspaces", `{"action":"list_members","workspace":"ws_a"}`, core.RoleAdmin, `"members":[{"user":{"id":"ann"`, nil, ""},
		"a member who comes":             {"manage_workspaces", `{"action":"put_member","workspace":"ws_a","user":"ann"}`, core.RoleAdmin, `"role":"member"`, []string{"put ws_a ann member", "changed ann"}, ""},
		"a member who comes as an admin": {"manage_workspaces", `{"action":"put_member","workspace":"ws_a","user":"ann","role":"admin"}`, core.RoleAdmin, `"role":"admin"`, []string{"put ws_a ann admin", "changed ann"}, ""},
		"a member who goes":              {"manage_workspaces", `{"action":"remove_member","workspace":"ws_a","user":"ann"}`, core.RoleAdmin, `"removed":true`, []string{"remove ws_a ann", "changed ann"}, ""},
		"which member":                   {"manage_workspaces", `{"action":"remove_member","workspace":"ws_a"}`, core.RoleAdmin, "user is missing", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeople()
			n := newNamespace(&fakeApps{}, &events{}, nil, tools.ManageUsers(p, p), tools.ManageWorkspaces(p, p))
			who := caller("ws_a", c.role)
			who.User.ID = "me"
			got, err := n.Call(t.Context(), who, tools.Call{Name: "system__" + c.tool, Arguments: json.RawMessage(c.arguments)})
			if c.code == "" && err != nil || c.code != "" && core.CodeOf(err) != c.code {
				t.Fatalf("it gives %v", err)
			}
			if plain := strings.ReplaceAll(string(got), `\"`, `"`); !strings.Contains(plain, c.want) || !slices.Equal(p.done, c.done) {
				t.Errorf("%s\nchanged %q", got, p.done)
			}
		})
	}
}
