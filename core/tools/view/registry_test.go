package view

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
)

// memory is a Store in memory.
type memory struct {
	views map[string][]core.View
	err   error
}

func (m *memory) Views(context.Context) (map[string][]core.View, error) { return m.views, m.err }

func (m *memory) PutView(context.Context, string, core.View) error { return m.err }

func (m *memory) DeleteView(_ context.Context, workspace, name string) error {
	if !slices.ContainsFunc(m.views[workspace], func(v core.View) bool { return v.Name == name }) {
		return core.Errorf(core.CodeNotFound, "no view")
	}
	return m.err
}

func callerIn(workspace string, role core.Role, key, address string) core.Caller {
	return core.Caller{Identity: core.Identity{Scope: core.Scope{View: key}}, Workspace: core.Workspace{ID: workspace, Role: role}, View: address}
}

// viewNames returns the names of the views that apply to a caller.
func viewNames(s *Set) string {
	switch {
	case s == nil:
		return "everything"
	case s.none:
		return "nothing"
	}
	var names []string
	for _, v := range s.views {
		names = append(names, v.Name)
	}
	return strings.Join(names, " ")
}

// bound returns a view that applies to workspace roles or to groups.
func bound(t *testing.T, definition string, roles []core.Role, groups ...string) *View {
	t.Helper()
	v := newView(t, definition)
	v.Roles, v.Groups = roles, groups
	return v
}

func TestTheViewsForRoleKeyAndAddressApplyToACaller(t *testing.T) {
	store := &memory{views: map[string][]core.View{"ws_a": {{Name: "stored"}, {Name: "both"}, {Name: "Wrong"}}, "ws_b": {{Name: "other"}}}}
	r, err := NewRegistry(t.Context(), store, []Declared{
		{View: bound(t, `{"name":"members"}`, []core.Role{core.RoleMember}), Workspaces: []string{"ws_a"}},
		{View: newView(t, `{"name":"everywhere"}`)},
		{View: newView(t, `{"name":"both","default":"deny"}`), Workspaces: []string{"ws_a"}},
	}, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		workspace    string
		role         core.Role
		key, address string
		want         string
	}{
		{"ws_a", core.RoleAdmin, "", "", "everything"},
		{"ws_b", core.RoleMember, "", "", "everything"},
		{"ws_a", core.RoleMember, "", "", "members"},
		{"ws_a", core.RoleMember, "stored", "everywhere", "members stored everywhere"},
		{"ws_a", core.RoleAdmin, "stored", "", "stored"},
		{"ws_b", core.RoleAdmin, "", "everywhere", "everywhere"},
		{"ws_b", core.RoleAdmin, "stored", "", "nothing"}, // the view is in another workspace
		{"ws_a", core.RoleAdmin, "Wrong", "", "nothing"},  // the stored view is invalid
		{"ws_a", core.RoleAdmin, "gone", "everywhere", "nothing"},
	} {
		set := r.Of(callerIn(c.workspace, c.role, c.key, c.address))
		if got := viewNames(set); got != c.want {
			t.Errorf("%+v is subject to %s", c, got)
		}
		if set != r.Of(callerIn(c.workspace, c.role, c.key, c.address)) {
			t.Errorf("%+v: a different set although nothing changed", c)
		}
	}
	if v := r.Of(callerIn("ws_a", core.RoleAdmin, "", "both")).views[0]; v.Default != core.ViewDenies {
		t.Error("the declared view should take precedence over a stored one with the same name")
	}
	var listed []string
	for _, i := range r.List("ws_a") {
		listed = append(listed, i.Name)
	}
	if got := strings.Join(listed, " "); got != "Wrong both everywhere members stored" { // an invalid view is listed, so that an admin can see and remove it
		t.Errorf("listed %s", got)
	}
}

func TestUsersWithABoundRoleOrGroupSeeOnlyTheViewUntilItIsUnbound(t *testing.T) {
	store := &memory{views: map[string][]core.View{
		"ws_a": {{Name: "staff", Groups: []string{"staff", "All Staff"}}, {Name: "hidden", Groups: []string{"staff"}}, {Name: "lost", Include: []core.ToolRule{{}}, Groups: []string{"lost"}}},
		"ws_b": {{Name: "others", Groups: []string{"others"}, Roles: []core.Role{core.RoleMember}}},
	}}
	r, err := NewRegistry(t.Context(), store, []Declared{
		{View: bound(t, `{"name":"guests"}`, nil, "guests")},
		{View: newView(t, `{"name":"hidden"}`)}, // hides the stored view and its bindings
	}, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	of := func(workspace, key string, groups ...string) string {
		c := callerIn(workspace, core.RoleAdmin, key, "")
		c.User.Groups = core.GroupList(groups)
		return viewNames(r.Of(c))
	}
	for _, c := range []struct{ got, want string }{
		{of("ws_a", ""), "everything"},
		{of("ws_a", "", "Staff", "others", "staff\nx"), "everything"},
		{of("ws_a", "", "staff"), "staff"},
		{of("ws_a", "", "All Staff", "staff", "x"), "staff"},
		{of("ws_a", "hidden", "staff", "guests"), "guests staff hidden"},
		{of("ws_a", "", "lost"), "nothing"}, // the stored definition is invalid
		{of("ws_b", "", "staff"), "everything"},
		{of("ws_b", "", "guests", "others"), "guests others"},
	} {
		if c.got != c.want {
			t.Errorf("%s, want %s", c.got, c.want)
		}
	}
	if _, err := r.Set(t.Context(), "ws_a", core.View{Name: "staff"}); err != nil || of("ws_a", "", "staff") != "everything" {
		t.Errorf("%v; without the binding: %s", err, of("ws_a", "", "staff"))
	}
	i, err := r.Set(t.Context(), "ws_a", core.View{Name: "more", Groups: []string{"more"}, Roles: []core.Role{core.RoleMember}})
	if err != nil || of("ws_a", "", "more") != "more" || viewNames(r.Of(callerIn("ws_a", core.RoleMember, "", ""))) != "more" || len(i.Groups) != 1 || len(i.Roles) != 1 {
		t.Errorf("%+v, %v", i, err)
	}
	for _, wrong := range []core.View{{Name: "v", Groups: []string{""}}, {Name: "v", Groups: []string{"a\nb"}}, {Name: "v", Roles: []core.Role{"owner"}}, {Name: "v", Groups: make([]string, 101)}} {
		if _, err := r.Set(t.Context(), "ws_a", wrong); core.CodeOf(err) != core.CodeBadRequest {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
}

func TestAChangeToAViewAppliesImmediatelyAndIsAnnounced(t *testing.T) {
	store := &memory{views: map[string][]core.View{"ws_a": {{Name: "old"}}}}
	r, err := NewRegistry(t.Context(), store, nil, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	var announced []string
	defer r.Watch(func(workspace string) { announced = append(announced, workspace) })()
	c := callerIn("ws_a", core.RoleAdmin, "new", "")
	if got := viewNames(r.Of(c)); got != "nothing" {
		t.Errorf("before: %s", got)
	}
	if _, err := r.Set(t.Context(), "ws_a", core.View{Name: "new"}); err != nil || viewNames(r.Of(c)) != "new" || !r.Has("ws_a", "old") {
		t.Errorf("%v, %s", err, viewNames(r.Of(c)))
	}
	if err := r.Remove(t.Context(), "ws_a", "old"); err != nil || r.Has("ws_a", "old") {
		t.Error(err)
	}
	if err := r.Remove(t.Context(), "ws_a", "none"); core.CodeOf(err) != core.CodeNotFound {
		t.Error(err)
	}
	store.err = errors.New("down")
	if _, err := r.Set(t.Context(), "ws_a", core.View{Name: "lost"}); err == nil || r.Has("ws_a", "lost") {
		t.Errorf("a view that was not stored: %v", err)
	}
	if err := r.Reload(t.Context()); err == nil || !r.Has("ws_a", "new") {
		t.Errorf("the views should survive an outage: %v", err)
	}
	store.err = nil
	r.Declare([]Declared{{View: bound(t, `{"name":"mine"}`, []core.Role{core.RoleAdmin})}})
	if _, err := r.Set(t.Context(), "ws_a", core.View{Name: "mine"}); core.CodeOf(err) != core.CodeConflict || viewNames(r.Of(c)) != "mine new" {
		t.Errorf("%v, %s", err, viewNames(r.Of(c)))
	}
	if err := r.Remove(t.Context(), "ws_a", "mine"); core.CodeOf(err) != core.CodeConflict {
		t.Error(err)
	}
	if err := r.Reload(t.Context()); err != nil || strings.Join(announced, ",") != "ws_a,ws_a,," {
		t.Errorf("%v, announced %q", err, announced)
	}
}
