package apps

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/kballard/go-shellquote"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// granting returns a Manager without apps, for decisions about permissions, and paths that every user may read.
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
	random := rand.New(rand.NewPCG(28, 1)) //nolint:gosec // the test must be repeatable
	key := interact.AppRef{Workspace: core.DefaultWorkspaceID, Name: "x"}
	for range 500 {
		record := core.Installation{Workspace: key.Workspace, Name: key.Name, Source: core.Source{Kind: core.SourceNPM, Ref: "x"}}
		model := map[string]core.PermissionKind{} // the access in force, by path
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
				t.Fatalf("%v are in force, want %v; the record has %+v", granted, model, record.Permissions)
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

// A workspace admin may change an app's values. If an organization admin then changes other values, this must not grant
// the values that the workspace admin set.
func TestAnOrganizationAdminGrantsOnlyTheValuesThatTheChangeSets(t *testing.T) {
	m, paths := granting(t)
	owner, admin := ownerOfAll(), core.Caller{}
	admin.Workspace.Role = core.RoleAdmin
	change := func(in core.Installation, c core.Caller, names ...string) []core.Permission {
		s := Settings{Caller: c, UserConfig: map[string]json.RawMessage{}}
		for _, name := range names {
			s.UserConfig[name] = json.RawMessage(`"set"`)
		}
		m.updateGrants(&in, s)
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
		t.Errorf("the workspace admin granted %v", got)
	}
	if got := granted(change(in, owner, "key")); !slices.Equal(got, paths[:1]) {
		t.Errorf("the owner changed another value and granted %v", got)
	}
	if got := granted(change(in, owner, "two")); !slices.Equal(got, paths[:2]) {
		t.Errorf("the owner set the value and granted %v", got)
	}
	in.Env["one"] = core.Secret(paths[1])
	if got := granted(change(in, owner, "one")); !slices.Equal(got, paths[1:2]) {
		t.Errorf("after the owner replaced it, %v is granted", got)
	}
	declared := withFolders("", paths[1])
	if declared.Permissions = change(declared, admin, "two"); declared.Permissions == nil {
		t.Error("the values of a declared app will be granted once it is no longer declared")
	}
	m.guard.Grantable = config.GrantersNobody
	if got := granted(change(withFolders(paths[0], ""), owner, "one")); len(got) > 0 {
		t.Errorf("%v was granted although only the configuration may grant anything", got)
	}
}

// The sandbox allows access to the packages that a bundle links to, so nobody has to be asked about a script in one.
func TestNoPermissionIsRequestedForAPackageThatABundleLinksTo(t *testing.T) {
	m, paths := granting(t)
	packages := filepath.Join(paths[0], "node_modules")
	script := filepath.Join(packages, "server", "index.js")
	if err := errors.Join(os.MkdirAll(filepath.Dir(script), 0o755), os.WriteFile(script, nil, 0o644), os.Symlink(packages, filepath.Join(paths[1], "node_modules"))); err != nil { //nolint:gosec // every user may read it
		t.Fatal(err)
	}
	app := core.Installation{
		Workspace: core.DefaultWorkspaceID, Name: "x", Source: core.Source{Kind: core.SourcePath, Ref: paths[1]}, Dir: paths[1],
		Manifest: []byte(`{"manifest_version":"0.3","name":"x","version":"1","description":"d","author":{"name":"a"},
			"server":{"type":"node","entry_point":"x","mcp_config":{"command":"node","args":["${__dirname}/node_modules/server/index.js"]}}}`),
	}
	if all := m.requests(app); len(all) != 0 {
		t.Errorf("it asks for %+v", all)
	}
	if err := os.Rename(filepath.Join(paths[1], "node_modules"), filepath.Join(paths[1], "lib")); err != nil {
		t.Fatal(err)
	}
	app.Manifest = bytes.ReplaceAll(app.Manifest, []byte("/node_modules/"), []byte("/lib/"))
	if all := m.requests(app); len(all) != 1 || all[0].Target != script {
		t.Errorf("through another link, it asks for %+v", all)
	}
}

func TestADecisionIsRecordedInOneSpellingOfItsPath(t *testing.T) {
	m, paths := granting(t)
	owner, source := ownerOfAll(), core.Source{Kind: core.SourceNPM, Ref: "x"}
	net := func(target string) []core.Access { return []core.Access{{Kind: core.PermissionNet, Target: target}} }
	denied := m.changed(nil, source, owner, core.PermissionChange{Deny: append(net("LOCALHOST:06379"), core.Access{Kind: core.PermissionRead, Target: paths[1] + "/./"})})
	if len(denied) != 2 || denied[0].Target != "localhost:6379" || denied[1].Target != paths[1] {
		t.Errorf("denied: %+v", denied)
	}
	if left := m.changed(denied[:1], source, owner, core.PermissionChange{Revoke: net("Localhost:6379")}); len(left) != 0 {
		t.Errorf("after it was revoked: %+v", left)
	}
	older := []core.Permission{{Access: net("LOCALHOST:6379")[0], Server: "first", Source: source.Text()}}
	if all, _ := m.grants(core.Installation{Source: source, Permissions: older}); len(all) != 1 {
		t.Error("a grant that was recorded in another spelling is no longer in force")
	}
	both := core.PermissionChange{Allow: net("localhost:1"), Deny: net("localhost:1")}
	if err := m.checkDecisions(owner, interact.AppRef{}, &both); core.CodeOf(err) != core.CodeBadRequest {
		t.Errorf("a path that is both allowed and denied: %v", err)
	}
}

func TestADeniedPathInAGrantedDirectoryIsShownAsAccessible(t *testing.T) {
	m, paths := granting(t)
	owner := ownerOfAll()
	record := core.Installation{Source: core.Source{Kind: core.SourceNPM, Ref: "x"}}
	decide := func(change core.PermissionChange) (reason string) {
		record.Permissions = m.changed(record.Permissions, record.Source, owner, change)
		i := slices.IndexFunc(record.Permissions, func(p core.Permission) bool { return p.Target == paths[2] })
		state, reason := m.stateOf(record, record.Permissions[i])
		if state != core.PermissionDenied {
			t.Errorf("it is %s", state)
		}
		return reason
	}
	inner, outer := core.Access{Kind: core.PermissionRead, Target: paths[2]}, core.Access{Kind: core.PermissionWrite, Target: paths[0]}
	if reason := decide(core.PermissionChange{Deny: []core.Access{inner}}); reason != "" {
		t.Errorf("on its own: %s", reason)
	}
	if reason := decide(core.PermissionChange{Allow: []core.Access{outer}}); !strings.Contains(reason, "because "+paths[0]+",") {
		t.Errorf("inside a granted directory: %q", reason)
	}
	if reason := decide(core.PermissionChange{Revoke: []core.Access{outer}}); reason != "" {
		t.Errorf("after the directory was revoked: %s", reason)
	}
}

func TestAFailedStartNamesThePathsThatOnlyTheConfigurationCanAllow(t *testing.T) {
	m, _ := granting(t)
	m.o.Sandbox.Level, m.o.Confinement.Probe.Level = sandbox.LevelNamespaces, sandbox.LevelNamespaces
	script := filepath.Join(m.o.HostEnv["HOME"], ".ssh", "s.py")
	a := &app{manager: m, key: interact.AppRef{Workspace: core.DefaultWorkspaceID, Name: "x"}}
	a.now.Store(&view{record: core.Installation{
		Workspace: core.DefaultWorkspaceID, Name: "x", Source: core.Source{Kind: core.SourceCommand, Ref: "python3"},
		Manifest: fmt.Appendf(nil, `{"manifest_version":"0.3","name":"x","version":"1","description":"d","author":{"name":"a"},
			"server":{"type":"binary","mcp_config":{"command":"python3","args":[%q]}}}`, script),
	}})
	failure := &instance.Failure{Reason: "the process exited", Output: []string{"can't open file '" + script + "'"}}
	hints := a.hintsOf(ownerOfAll(), failure, "--%s %s")
	if len(hints) != 1 || !strings.Contains(hints[0], "the sandbox hides "+script) || !strings.Contains(hints[0], "allowed only in the configuration") {
		t.Errorf("the owner gets %q", hints)
	}
	if hints := a.hintsOf(core.Caller{}, failure, "--%s %s"); len(hints) != 0 {
		t.Errorf("a member gets %q", hints)
	}
	failure.Output = nil
	if hints := a.hintsOf(ownerOfAll(), failure, "--%s %s"); len(hints) != 0 {
		t.Errorf("without a path in the output, the owner gets %q", hints)
	}
}

// People copy the command in a hint into a shell, and the path in the command comes from the app's definition.
func TestTheCommandInAHintQuotesItsPath(t *testing.T) {
	m, paths := granting(t)
	m.o.Sandbox.Level, m.o.Confinement.Probe.Level = sandbox.LevelNamespaces, sandbox.LevelNamespaces
	path := filepath.Join(paths[0], "a b;$(touch x)")
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	a := &app{manager: m, key: interact.AppRef{Workspace: core.DefaultWorkspaceID, Name: "x"}}
	a.now.Store(&view{record: core.Installation{
		Workspace: core.DefaultWorkspaceID, Name: "x", Source: core.Source{Kind: core.SourceCommand, Ref: "python3"},
		Manifest: fmt.Appendf(nil, `{"manifest_version":"0.3","name":"x","version":"1","description":"d","author":{"name":"a"},
			"server":{"type":"binary","mcp_config":{"command":"python3","args":[%q]}}}`, path),
	}})
	hints := a.hintsOf(ownerOfAll(), &instance.Failure{Reason: "the process exited"}, "allow --%s %s")
	if len(hints) != 1 {
		t.Fatalf("%q", hints)
	}
	_, command, _ := strings.Cut(hints[0], "; allow ")
	if words, err := shellquote.Split(command); err != nil || len(words) != 2 || words[1] != path {
		t.Errorf("the command is %q: %q, %v", command, words, err)
	}
}
