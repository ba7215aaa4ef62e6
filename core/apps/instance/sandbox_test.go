package instance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kballard/go-shellquote"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/logs"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/process"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

func TestAManifestCannotGrantItsAppADirectory(t *testing.T) {
	home, secret := t.TempDir(), t.TempDir()
	dir := filepath.Join(home, "apps/hostile/bundle/1")
	for name, content := range map[string]string{"server/bin/run": "", "server/pyvenv.cfg": "home = " + secret + "\n"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	s := &Starter{
		HostEnv:     map[string]string{"PATH": "/usr/bin:/bin", "HOME": "/home/somebody"},
		Confinement: Confinement{Home: home, Probe: process.Probe{Level: sandbox.LevelLandlock}},
	}
	spec := Spec{
		Record: core.Installation{Name: "hostile", Dir: dir, Source: core.Source{Kind: core.SourceName}, Manifest: []byte(`{
			"manifest_version": "0.3", "name": "hostile", "version": "1.0.0", "description": "d", "author": {"name": "a"},
			"server": {"type": "binary", "entry_point": "server/bin/run", "mcp_config": {
				"command": "${__dirname}/server/bin/run", "env": {"PATH": "` + secret + `:/usr/bin", "HOME": "` + secret + `"}}}}`)},
		DataDir: filepath.Join(home, "apps/hostile/data"), Sandbox: config.Sandbox{Level: sandbox.LevelNamespaces},
	}
	launch, err := s.plan(spec)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.profile(spec, launch)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(p.Read, p.Write...) {
		if strings.HasPrefix(path, secret) {
			t.Errorf("the app may use %s", path)
		}
	}
}

// A workspace admin may change the values of an app that the configuration declares.
func TestOnlyTheValuesInTheConfigurationGrantDirectories(t *testing.T) {
	s := &Starter{Confinement: Confinement{Home: "/srv/ropewalk"}}
	spec := Spec{
		Declared: map[string]core.Secret{"folder": "/srv/notes"},
		Record: core.Installation{Source: core.Source{Kind: core.SourcePath}, Env: map[string]core.Secret{"folder": "/srv/other"}, Manifest: []byte(`{
			"manifest_version": "0.3", "name": "x", "version": "1", "description": "d", "author": {"name": "a"},
			"server": {"type": "binary", "entry_point": "x", "mcp_config": {"command": "x"}},
			"user_config": {"folder": {"type": "directory", "title": "Folder", "description": "d"}}}`)},
	}
	if got, err := s.granted(spec); err != nil || strings.Join(got, " ") != "/srv/notes" {
		t.Errorf("%v %v", got, err)
	}
	spec.Declared = nil
	if got, err := s.granted(spec); err != nil || len(got) > 0 {
		t.Errorf("without a declaration: %v %v", got, err)
	}
}

func TestASecretOnACommandLineThatOthersCanReadIsReported(t *testing.T) {
	redactor := logs.NewRedactor(core.Installation{Env: map[string]core.Secret{"key": "a-secret-value"}})
	for _, one := range []struct {
		profile *sandbox.Profile
		arg     string
		want    bool
	}{
		{nil, "--key=a-secret-value", true},
		{&sandbox.Profile{Level: sandbox.LevelLandlock}, "--key=a-secret-value", true},
		{&sandbox.Profile{Level: sandbox.LevelLandlock}, "--key-file=/run/key", false},
		{&sandbox.Profile{Level: sandbox.LevelNamespaces}, "--key=a-secret-value", false},
	} {
		if got := showsSecrets(one.profile, []string{"index.js", one.arg}, redactor); got != one.want {
			t.Errorf("%+v with %s: %v", one.profile, one.arg, got)
		}
	}
}

// People copy the command into a shell, and the path in it comes from the app's definition.
func TestTheCommandThatGivesAnAppsUserAccessQuotesThePath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b;$(touch x)")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	c := Confinement{Probe: process.Probe{Level: sandbox.LevelLandlock, OwnUID: true}}
	err := c.CheckGrant(config.Sandbox{Level: sandbox.LevelLandlock}, "/data", core.Access{Kind: core.PermissionRead, Target: path})
	if err == nil {
		t.Fatal("the app's user has access")
	}
	_, command, _ := strings.Cut(err.Error(), "; to allow access, run ")
	if words, err := shellquote.Split(command); err != nil || words[len(words)-1] != path {
		t.Errorf("the command is %q: %q, %v", command, words, err)
	}
}
