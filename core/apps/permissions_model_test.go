package apps

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/config"
)

// granting returns a Manager without apps that decides about permissions, and paths that every user may read.
func granting(t *testing.T) (m *Manager, paths []string) {
	t.Helper()
	root, err := os.MkdirTemp("/tmp", "granting-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	for _, name := range []string{"server", "home", "a", "b", "a/inner"} {
		if err := os.MkdirAll(filepath.Join(root, name), 0o755); err != nil { //nolint:gosec // as above
			t.Fatal(err)
		}
	}
	if err := os.Chmod(root, 0o755); err != nil { //nolint:gosec // as above
		t.Fatal(err)
	}
	m = &Manager{log: hclog.NewNullLogger(), o: Options{
		Home: filepath.Join(root, "server"), HostEnv: map[string]string{"HOME": filepath.Join(root, "home")}, Sandbox: config.Sandbox{Grantable: config.GrantersOrg},
	}}
	m.setup.Store(&setup{})
	m.guard, m.identity.name = m.newGuard(), "first"
	return m, []string{filepath.Join(root, "a"), filepath.Join(root, "b"), filepath.Join(root, "a", "inner")}
}

func ownerOfAll() (c core.Caller) {
	c.User.ID, c.User.OrgRole, c.Workspace.Role = "usr_owner", core.RoleOwner, core.RoleAdmin
	return c
}

func TestAnAppsPermissionsMatchTheRecord(t *testing.T) {
	m, paths := granting(t)
	owner := ownerOfAll()
	random := rand.New(rand.NewPCG(28, 1)) //nolint:gosec // a test that can be repeated
	key := interact.AppRef{Workspace: core.DefaultWorkspaceID, Name: "x"}
	for range 500 {
		record := core.Installation{Workspace: key.Workspace, Name: key.Name, Source: core.Source{Kind: core.SourceNPM, Ref: "x"}}
		model := map[string]core.PermissionKind{} // the access that is in force, by path
		m.identity.name = "first"
		for range 12 {
			path := paths[random.IntN(len(paths))]
			kind := []core.PermissionKind{core.PermissionRead, core.PermissionWrite}[random.IntN(2)]
			list := []core.Access{{Kind: kind, Target: path}}
			change := core.PermissionChange{}
			switch random.IntN(8) {
			case 0, 1, 2:
				change.Allow = list
				model[path] = kind
			case 3:
				change.Deny = list
				delete(model, path)
			case 4:
				change.Revoke = list
				delete(model, path)
			case 5: // an update keeps the source and the grants
				record.Version += "1"
				continue
			case 6: // a restored state, or another server
				m.identity.name += "-restored"
				clear(model)
				continue
			default: // another source under the same name
				record.Source.Ref += "y"
				clear(model)
				continue
			}
			if err := m.checkDecisions(owner, key, &change); err != nil {
				t.Fatal(err)
			}
			record.Permissions = m.changed(record.Permissions, record.Source, owner, change)
			granted := map[string]core.PermissionKind{}
			all, _ := m.grants(record)
			for _, a := range all {
				if granted[a.Target] != "" {
					t.Fatalf("%s is granted twice: %v", a.Target, all)
				}
				granted[a.Target] = a.Kind
			}
			if !maps.Equal(granted, model) {
				t.Fatalf("in force is %v, want %v; recorded is %+v", granted, model, record.Permissions)
			}
		}
	}
}

func TestAPendingPermissionIsConfirmedByAllowingItAgain(t *testing.T) {
	m, paths := granting(t)
	owner := ownerOfAll()
	allow := core.PermissionChange{Allow: []core.Access{{Kind: core.PermissionRead, Target: paths[0]}}}
	record := core.Installation{Source: core.Source{Kind: core.SourceNPM, Ref: "x"}}
	record.Permissions = m.changed(nil, record.Source, owner, allow)
	m.identity.name = "another"
	if state, _ := m.stateOf(record, record.Permissions[0]); state != core.PermissionPending {
		t.Errorf("on another server it is %s", state)
	}
	record.Permissions = m.changed(record.Permissions, record.Source, owner, allow)
	if all, _ := m.grants(record); !slices.Equal(all, allow.Allow) || len(record.Permissions) != 1 {
		t.Errorf("confirmed: %v of %+v", all, record.Permissions)
	}
}

// withFolders returns an app from a path with two directories in its user_config.
func withFolders(one, two string) core.Installation {
	return core.Installation{
		Workspace: core.DefaultWorkspaceID, Name: "x", Source: core.Source{Kind: core.SourcePath, Ref: "/x"}, Env: map[string]core.Secret{"one": core.Secret(one), "two": core.Secret(two)},
		Manifest: []byte(`{"manifest_version":"0.3","name":"x","version":"1","description":"d","author":{"name":"a"},"server":{"type":"binary","entry_point":"x","mcp_config":{"command":"x"}},
			"user_config":{"one":{"type":"directory","title":"One","description":"d"},"two":{"type":"directory","title":"Two","description":"d"}}}`),
	}
}

// An admin of a workspace may change the values of an app. Nobody else must grant them by changing others.
func TestAnAdminOfTheOrganizationGrantsOnlyTheValuesThatTheChangeNames(t *testing.T) {
	m, paths := granting(t)
	owner, admin := ownerOfAll(), core.Caller{}
	admin.Workspace.Role = core.RoleAdmin
	change := func(in core.Installation, c core.Caller, names ...string) []core.Permission {
		s := Settings{Caller: c, UserConfig: map[string]json.RawMessage{}}
		for _, name := range names {
			s.UserConfig[name] = json.RawMessage(`"set"`)
		}
		m.grantAnew(&in, s)
		return in.Permissions
	}
	granted := func(all []core.Permission) (targets []string) {
		for _, p := range all {
			targets = append(targets, p.Target)
		}
		return targets
	}
	in := withFolders(paths[0], "")
	in.Permissions = change(in, owner, "one")
	if got := granted(in.Permissions); !slices.Equal(got, paths[:1]) {
		t.Fatalf("the owner granted %v", got)
	}
	in.Env["two"] = core.Secret(paths[1])
	in.Permissions = change(in, admin, "two")
	if got := granted(in.Permissions); !slices.Equal(got, paths[:1]) {
		t.Errorf("the admin of the workspace granted %v", got)
	}
	if got := granted(change(in, owner, "key")); !slices.Equal(got, paths[:1]) {
		t.Errorf("the owner changed another value and granted %v", got)
	}
	if got := granted(change(in, owner, "two")); !slices.Equal(got, paths[:2]) {
		t.Errorf("the owner named the value and granted %v", got)
	}
	in.Env["one"] = core.Secret(paths[1])
	if got := granted(change(in, owner, "one")); !slices.Equal(got, paths[1:2]) {
		t.Errorf("after the owner replaced it, %v is granted", got)
	}
	declared := withFolders("", paths[1])
	if declared.Permissions = change(declared, admin, "two"); declared.Permissions == nil {
		t.Error("the values of a declared app will be granted when it is not declared any more")
	}
	m.guard.Grantable = config.GrantersNobody
	if got := granted(change(withFolders(paths[0], ""), owner, "one")); len(got) > 0 {
		t.Errorf("where only the configuration grants anything, %v was granted", got)
	}
}
