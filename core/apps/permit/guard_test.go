package permit

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
)

// machine sets up a person's home with secrets and, next to it, a directory of documents. Everyone may read both.
func machine(t *testing.T) (g *Guard, home, docs string) {
	t.Helper()
	root, err := os.MkdirTemp("/tmp", "permit-") // in directories that every user may pass through
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	home, docs = filepath.Join(root, "home"), filepath.Join(root, "docs")
	for _, dir := range []string{filepath.Join(home, ".ssh"), filepath.Join(home, "notes"), filepath.Join(root, "server", "apps"), docs} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for file, text := range map[string]string{filepath.Join(home, ".ssh", "id"): "key", filepath.Join(docs, "a.txt"): "a", filepath.Join(root, "server.yaml"): ""} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	return &Guard{
		Home: filepath.Join(root, "server"), Env: map[string]string{"HOME": home}, Protected: []string{filepath.Join(root, "server.yaml")},
		Ports: func() []int { return []int{27247} }, Grantable: config.GrantersOrg,
	}, home, docs
}

func link(t *testing.T, target, at string) string {
	t.Helper()
	if err := os.Symlink(target, at); err != nil {
		t.Fatal(err)
	}
	return at
}

func TestProtectedPathsCannotBeGrantedHoweverTheyAreSpelled(t *testing.T) {
	g, home, docs := machine(t)
	root := filepath.Dir(home)
	hard := filepath.Join(docs, "hard")
	if err := os.Link(filepath.Join(home, ".ssh", "id"), hard); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		filepath.Join(home, ".ssh"), filepath.Join(home, ".ssh", "id"), filepath.Join(home, ".ssh") + "/", home + "/./.ssh/../.ssh", docs + "/../home/.ssh/id",
		link(t, home, filepath.Join(docs, "way")), link(t, filepath.Join(home, ".ssh"), filepath.Join(docs, "keys")), filepath.Join(docs, "way", ".ssh", "id"),
		"/proc/self/root" + home + "/.ssh", hard,
		filepath.Join(home, ".aws"), filepath.Join(home, ".netrc"), // these do not exist
		home, root, "/", "/tmp", "/dev", "/dev/null", "/proc/self", "/sys/kernel", "/etc/shadow", "/etc",
		g.Home, filepath.Join(g.Home, "apps"), filepath.Join(root, "server.yaml"), filepath.Join(root, "server.yaml.000001"),
	} {
		for _, kind := range []core.PermissionKind{core.PermissionRead, core.PermissionWrite} {
			if _, err := g.Check(core.Access{Kind: kind, Target: path}); core.CodeOf(err) != core.CodeForbidden {
				t.Errorf("%s %s: %v", kind, path, err)
			}
		}
	}
	for _, path := range []string{filepath.Join(home, ".bashrc"), "/usr/bin"} {
		if _, err := g.Check(core.Access{Kind: core.PermissionWrite, Target: path}); core.CodeOf(err) != core.CodeForbidden {
			t.Errorf("write %s: %v", path, err)
		}
	}
}

func TestAGrantedPathIsRecordedWithItsLinksResolved(t *testing.T) {
	g, home, docs := machine(t)
	for given, want := range map[string]string{
		docs + "/": docs, docs + "/x/../a.txt": "", link(t, docs, filepath.Join(home, "link")): docs, filepath.Join(home, "notes"): filepath.Join(home, "notes"),
		docs + "/a.txt": docs + "/a.txt",
	} {
		got, err := g.Check(core.Access{Kind: core.PermissionWrite, Target: given})
		if want == "" {
			if core.CodeOf(err) != core.CodeBadRequest {
				t.Errorf("%s: %v", given, err)
			}
			continue
		}
		if err != nil || got.Target != want {
			t.Errorf("%s is recorded as %s: %v", given, got.Target, err)
		}
	}
	for _, wrong := range []core.Access{{Kind: core.PermissionRead, Target: "docs"}, {Kind: core.PermissionRead, Target: docs + "/none"}, {Kind: "all", Target: docs}} {
		if _, err := g.Check(wrong); core.CodeOf(err) != core.CodeBadRequest {
			t.Errorf("%v: %v", wrong, err)
		}
	}
}

func TestPathsThatOnlyRootCanReadNeedTheConfiguration(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	g, _, docs := machine(t)
	secret := filepath.Join(docs, "secret")
	if err := os.WriteFile(secret, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, a := range []core.Access{{Kind: core.PermissionRead, Target: secret}, {Kind: core.PermissionWrite, Target: docs}} {
		if _, err := g.Check(a); core.CodeOf(err) != core.CodeForbidden || !strings.Contains(err.Error(), "only root can read") {
			t.Errorf("%v: %v", a, err)
		}
	}
	if _, err := g.Check(core.Access{Kind: core.PermissionRead, Target: docs}); err != nil { // every user can read it
		t.Error(err)
	}
	many := filepath.Join(filepath.Dir(docs), "many")
	if err := os.Mkdir(many, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range maxCheckedEntries {
		if err := os.WriteFile(filepath.Join(many, strconv.Itoa(i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := g.Check(core.Access{Kind: core.PermissionWrite, Target: many}); core.CodeOf(err) != core.CodeForbidden {
		t.Errorf("a directory owned by root with too many files to check: %v", err)
	}
}

func TestPortsOfThisMachineAreGrantedExceptTheServers(t *testing.T) {
	g, _, _ := machine(t)
	for target, want := range map[string]core.Code{
		"localhost:6379": "", "127.0.0.1:5432": "", "[::1]:80": "", "localhost:27247": core.CodeForbidden, "127.9.9.9:27247": core.CodeForbidden, "localhost:2375": core.CodeForbidden,
		"localhost:6000": core.CodeForbidden, "example.com:80": core.CodeBadRequest, "169.254.169.254:80": core.CodeBadRequest, "localhost:*": core.CodeBadRequest, "localhost": core.CodeBadRequest,
		"localhost:0": core.CodeBadRequest, "0.0.0.0:80": core.CodeBadRequest,
	} {
		_, err := g.Check(core.Access{Kind: core.PermissionNet, Target: target})
		if want == "" && err != nil || want != "" && core.CodeOf(err) != want {
			t.Errorf("%s: %v, want %s", target, err, want)
		}
	}
	for target, want := range map[string]string{"LOCALHOST:080": "localhost:80", "[0:0::1]:80": "[::1]:80", "[::ffff:127.0.0.1]:80": "127.0.0.1:80", "localhost:+80": ""} {
		if got, _ := g.Check(core.Access{Kind: core.PermissionNet, Target: target}); got.Target != want {
			t.Errorf("%s is recorded as %s, want %s", target, got.Target, want)
		}
	}
	for target, want := range map[string]core.Code{
		"api.example:443": "", "198.51.100.7:*": "", "10.0.0.0/8:5432": "", "localhost:27247": core.CodeBadRequest, "127.0.0.1:*": core.CodeBadRequest,
		"[::1]:80": core.CodeBadRequest, "[::ffff:127.0.0.1]:80": core.CodeBadRequest, "all": core.CodeBadRequest, "none": core.CodeBadRequest, "api.example": core.CodeBadRequest,
	} {
		_, err := g.Check(core.Access{Kind: core.PermissionNetOnly, Target: target})
		if want == "" && err != nil || want != "" && core.CodeOf(err) != want {
			t.Errorf("only %s: %v, want %s", target, err, want)
		}
	}
	for name, want := range map[string]core.Code{"EDITOR_THEME": "", "OPENAI_API_KEY": core.CodeForbidden, "SSH_AUTH_SOCK": core.CodeForbidden, "LD_PRELOAD": core.CodeForbidden, "A=B": core.CodeBadRequest} {
		_, err := g.Check(core.Access{Kind: core.PermissionEnv, Target: name})
		if want == "" && err != nil || want != "" && core.CodeOf(err) != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

func TestOnlyUsersNamedInTheConfigurationMayGrant(t *testing.T) {
	g, home, docs := machine(t)
	g.Shared = []string{docs}
	leadsOut := link(t, filepath.Join(home, "notes"), filepath.Join(docs, "away"))
	admin := core.Caller{}
	admin.Workspace.Role = core.RoleAdmin
	owner := admin
	owner.User.OrgRole = core.RoleOwner
	member := core.Caller{}
	for _, step := range []struct {
		who     core.Caller
		granted config.Granters
		access  core.Access
		may     bool
	}{
		{owner, config.GrantersOrg, core.Access{Kind: core.PermissionRead, Target: home}, true},
		{owner, config.GrantersNobody, core.Access{Kind: core.PermissionRead, Target: docs}, false},
		{owner, config.GrantersNobody, core.Access{Kind: core.PermissionNetOnly, Target: "a:1"}, true},
		{admin, config.GrantersOrg, core.Access{Kind: core.PermissionRead, Target: docs + "/a.txt"}, true},
		{admin, config.GrantersOrg, core.Access{Kind: core.PermissionRead, Target: leadsOut}, false},
		{admin, config.GrantersOrg, core.Access{Kind: core.PermissionRead, Target: docs + "/../home/notes"}, false},
		{admin, config.GrantersOrg, core.Access{Kind: core.PermissionNet, Target: "localhost:1"}, false},
		{admin, config.GrantersOrg, core.Access{Kind: core.PermissionEnv, Target: "X"}, false},
		{admin, config.GrantersWorkspace, core.Access{Kind: core.PermissionRead, Target: home}, true},
		{member, config.GrantersWorkspace, core.Access{Kind: core.PermissionRead, Target: docs}, false},
	} {
		g.Grantable = step.granted
		if err := g.MayGrant(step.who, step.access); (err == nil) != step.may {
			t.Errorf("%s %v: %v", step.granted, step.access, err)
		}
	}
}
