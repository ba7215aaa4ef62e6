package store

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
)

func TestAViewIsReadAsItWasSet(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		yes := true
		v := core.View{
			Name: "few", Default: core.ViewDenies, Include: []core.ToolRule{{App: "a"}, {Tool: "b__*", ReadOnly: &yes}}, Exclude: []core.ToolRule{{Destructive: &yes}},
			Tools: map[string]core.Relabel{"a__b": {Name: "c", Description: "d"}}, Surface: core.SurfaceFull, Roles: []core.Role{core.RoleMember}, Groups: []string{"staff"},
		}
		for _, one := range []core.View{{Name: "few", Default: core.ViewAllows}, v, {Name: "all", Default: core.ViewAllows}} {
			if err := s.PutView(t.Context(), core.DefaultWorkspaceID, one); err != nil {
				t.Fatal(err)
			}
		}
		all, err := s.Views(t.Context())
		if list := all[core.DefaultWorkspaceID]; err != nil || len(all) != 1 || len(list) != 2 || list[0].Name != "all" || !reflect.DeepEqual(list[1], v) {
			t.Errorf("%+v, %v", all, err)
		}
		if err := s.PutView(t.Context(), "ws_none", v); core.CodeOf(err) != core.CodeNotFound {
			t.Errorf("in a workspace that does not exist: %v", err)
		}
		if err := s.DeleteView(t.Context(), core.DefaultWorkspaceID, "few"); err != nil {
			t.Fatal(err)
		}
		if err := s.DeleteView(t.Context(), core.DefaultWorkspaceID, "few"); core.CodeOf(err) != core.CodeNotFound {
			t.Errorf("deleting the view again: %v", err)
		}
		key, err := s.CreateAPIKey(t.Context(), core.APIKey{Name: "k", User: somebody(t, s, "alice"), Workspace: core.DefaultWorkspaceID, Role: core.RoleMember, View: "all", Surface: core.SurfaceSearch}, "hash")
		if err != nil {
			t.Fatal(err)
		}
		if found, err := s.APIKey(t.Context(), "hash"); err != nil || found.View != "all" || found.Surface != core.SurfaceSearch || found.ID != key.ID {
			t.Errorf("%+v, %v", found, err)
		}
	})
}

func TestTheViewsOfAWorkspaceAreBoundedTogether(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		put := func(name string, size int) error {
			return s.PutView(t.Context(), core.DefaultWorkspaceID, core.View{Name: name, Tools: map[string]core.Relabel{"a__b": {Description: strings.Repeat("d", size)}}})
		}
		for i := range 4 {
			if err := put(fmt.Sprint("v", i), 1_000_000); err != nil {
				t.Fatal(err)
			}
		}
		wantCodes(t, core.CodeLimitReached, map[string]error{"one too many": put("v4", 1_000_000)})
		if err := put("v3", 1_000_000); err != nil {
			t.Errorf("replacing a view: %v", err)
		}
	})
}
