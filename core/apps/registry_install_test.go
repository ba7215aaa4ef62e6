package apps

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// memoryRegistry is an in-memory registry: packages by name, and files by artifact.
type memoryRegistry struct {
	packages map[string]registry.Package
	files    map[string][]byte
	down     bool
}

func (m memoryRegistry) Search(context.Context, registry.Query) (registry.Page, error) {
	return registry.Page{}, plugins.ErrUnimplemented
}

func (m memoryRegistry) Resolve(_ context.Context, ref registry.Ref) (registry.Package, error) {
	if m.down {
		return registry.Package{}, plugins.ErrUnavailable
	}
	pkg, ok := m.packages[ref.Name]
	if !ok || ref.Version != "" && ref.Version != pkg.Version {
		return registry.Package{}, plugins.ErrNotFound
	}
	return pkg, nil
}

func (m memoryRegistry) Fetch(_ context.Context, pkg registry.Package) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(m.files[pkg.Artifact])), nil
}

// mcpb returns a bundle file and its package for a registry.
func mcpb(t *testing.T, name string) (registry.Package, []byte) {
	t.Helper()
	raw, err := os.ReadFile(bundleFile(t, name, modeNormal, nil))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(raw)
	return registry.Package{
		Name: name, Version: "1.2.3", TrustScore: 75, Kind: registry.KindMCPB,
		Artifact: name, SHA256: hex.EncodeToString(sum[:]), Size: int64(len(raw)),
	}, raw
}

func with(registries ...source.NamedRegistry) func(*Options) {
	return func(o *Options) { o.Registries = registries }
}

func TestABundleIsInstalledFromTheFirstRegistryThatHasIt(t *testing.T) {
	pkg, raw := mcpb(t, "@test/notes")
	has := memoryRegistry{packages: map[string]registry.Package{pkg.Name: pkg}, files: map[string][]byte{pkg.Name: raw}}
	lower := pkg
	lower.TrustScore = 10
	second := memoryRegistry{packages: map[string]registry.Package{pkg.Name: lower}, files: has.files}
	records := newMemoryRecords()
	y, _ := realManager(t, t.TempDir(), records, with(
		source.NamedRegistry{Name: "empty", Registry: memoryRegistry{}}, source.NamedRegistry{Name: "down", Registry: memoryRegistry{down: true}}, source.NamedRegistry{Name: "has", Registry: has}, source.NamedRegistry{Name: "second", Registry: second}))
	app := install(t, y, source.Request{Name: "@test/notes@1.2.3"})
	expectApp(t, "result", app, core.App{Name: "notes", BundleName: "@test/notes", Version: "1.2.3", Status: core.StateRunning, Type: "plain", ToolCount: 5, TrustScore: 75})
	r, _ := records.get(ws, "notes")
	expect(t, "source", r.Source, core.Source{Kind: core.SourceName, Ref: "@test/notes", Registry: "has"})
}

func TestAPackageThatARegistryCannotDeliverIsNotInstalled(t *testing.T) {
	good, raw := mcpb(t, "@test/notes")
	for _, c := range []struct {
		name   string
		change func(*registry.Package)
		down   bool
		ask    string
		says   string
	}{
		{"another sha256", func(p *registry.Package) { p.SHA256 = strings.Repeat("0", 64) }, false, "@test/notes", "sha256"},
		{"no sha256", func(p *registry.Package) { p.SHA256 = "" }, false, "@test/notes", "sha256"},
		{"a file larger than the registry specifies", func(p *registry.Package) { p.Size-- }, false, "@test/notes", "bytes"},
		{"a file that is too large", func(p *registry.Package) { p.Size = 1 << 40 }, false, "@test/notes", "the limit for a bundle is"},
		{"a file smaller than the registry specifies", func(p *registry.Package) { p.Size++ }, false, "@test/notes", "bytes"},
		{"an unknown kind", func(p *registry.Package) { p.Kind = "oci" }, false, "@test/notes", "oci"},
		{"an npm package whose name is an option", func(p *registry.Package) { p.Kind, p.Identifier = registry.KindNPM, "--prefix=/" }, false, "@test/notes", "not a valid name"},
		{"a PyPI project whose name is an option", func(p *registry.Package) { p.Kind, p.Identifier = registry.KindPyPI, "--target=/" }, false, "@test/notes", "not a valid name"},
		{"another name", nil, false, "@test/other", "@test/other"},
		{"another version", nil, false, "@test/notes@9.9.9", "9.9.9"},
		{"a package from a registry that is down", nil, true, "@test/notes", "registry packages could not be reached"},
	} {
		t.Run(c.name, func(t *testing.T) {
			pkg := good
			if c.change != nil {
				c.change(&pkg)
			}
			packages := memoryRegistry{packages: map[string]registry.Package{pkg.Name: pkg}, files: map[string][]byte{pkg.Name: raw}, down: c.down}
			home := t.TempDir()
			y, _ := realManager(t, home, newMemoryRecords(), with(source.NamedRegistry{Name: "packages", Registry: packages}))
			_, err := y.Install(t.Context(), ws, source.Request{Name: c.ask})
			expect(t, "code", core.CodeOf(err), core.CodeInstallFailed)
			if !strings.Contains(core.TextOf(err), c.says) {
				t.Errorf("the message does not say %q: %v", c.says, err)
			}
			left, _ := filepath.Glob(filepath.Join(home, "apps", ".incoming", "*"))
			expect(t, "left in incoming", len(left), 0)
		})
	}
	y, _ := realManager(t, t.TempDir(), newMemoryRecords(), nil)
	_, err := y.Install(t.Context(), ws, source.Request{Name: "@test/notes"})
	expect(t, "code without registries", core.CodeOf(err), core.CodeInstallFailed)
}

func TestARemotePackageTakesItsVariablesFromEnv(t *testing.T) {
	s := remoteServer(t, "X-Key", "k3y-k3y", false)
	packages := memoryRegistry{packages: map[string]registry.Package{"io.test/far": {
		Name: "io.test/far", Version: "3.0.0", Kind: registry.KindRemote,
		Remote:    registry.Remote{Transport: "streamable-http", URL: s.URL + "/{region}/{key}/mcp", Headers: map[string]string{"X-Key": "{key}", "X-Unset": "a{unset}"}},
		Variables: []registry.Variable{{Name: "region", Default: "eu", Choices: []string{"eu", "us"}}, {Name: "unset"}, {Name: "key", Title: "Key", Required: true, Secret: true}},
	}}}
	records := newMemoryRecords()
	y, _ := realManager(t, t.TempDir(), records, func(o *Options) {
		private(o)
		o.Registries = []source.NamedRegistry{{Name: "packages", Registry: packages}}
	})
	_, err := y.Install(t.Context(), ws, source.Request{Name: "io.test/far"})
	expect(t, "code", core.CodeOf(err), core.CodeCredentialsRequired)
	raw, _ := json.Marshal(errorOf(t, err).Details)
	expect(t, "details", string(raw), `{"missing":[{"name":"key","title":"Key","description":"","sensitive":true}]}`)
	_, err = y.Install(t.Context(), ws, source.Request{Name: "io.test/far", Env: map[string]core.Secret{"key": "k3y-k3y", "region": "mars"}})
	expect(t, "code of a value that is not a choice", core.CodeOf(err), core.CodeBadRequest)
	app := install(t, y, source.Request{Name: "io.test/far", Env: map[string]core.Secret{"key": "k3y-k3y"}})
	expect(t, "name", app.Name, "far")
	expect(t, "bundle name", app.BundleName, s.URL+"/eu/redacted/mcp")
	r, _ := records.get(ws, "far")
	expect(t, "address", r.Remote.URL, s.URL+"/eu/k3y-k3y/mcp")
	expect(t, "headers, without the incomplete one", len(r.Remote.Headers), 1)
	expect(t, "version", app.Version, "9.9.9")
}

// installer creates a directory with a script that stands in for npm, uv or python3, covering only what the
// manager uses. The script records its arguments and environment.
func installer(t *testing.T, name, script string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	body := "#!/bin/sh\nset -e\necho \"$@\" >> \"" + dir + "/said\"\nenv | cut -d= -f1 >> \"" + dir + "/saw\"\n" + script
	if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestAnNPMPackageIsInstalledOnceIntoTheAppsOwnDirectory(t *testing.T) {
	self := selfPath(t)
	// "node" is a script that runs the bundle, so that the test does not need Node.js.
	node := installer(t, "node", `exec "`+self+`" `+bundleArg+` `+modeNormal)
	npm := installer(t, "npm", `mkdir -p "$3/node_modules/@test/notes"; echo '{"bin":{"other":"no.js","notes":"./dist/main.js"}}' > "$3/node_modules/@test/notes/package.json"`)
	packages := memoryRegistry{packages: map[string]registry.Package{"io.test/notes": {
		Name: "io.test/notes", Version: "4.5.6", Kind: registry.KindNPM, Identifier: "@test/notes", IdentifierVersion: "4.5.7",
		RuntimeArgs: []string{"--no-warnings"}, Args: []string{"--port={port}", "--host={host}", "{odd}"},
		Variables: []registry.Variable{{Name: "API_KEY", Required: true, Secret: true}, {Name: "port", Default: "0"}, {Name: "host"}},
	}}}
	home := t.TempDir()
	y, _ := realManager(t, home, newMemoryRecords(), func(o *Options) {
		o.Registries = []source.NamedRegistry{{Name: "packages", Registry: packages}}
		o.HostEnv["PATH"] = node + ":" + npm + ":" + o.HostEnv["PATH"]
		o.HostEnv["CANARY"], o.HostEnv["https_proxy"] = "canary", "http://proxy.test"
	})
	_, err := y.Install(t.Context(), ws, source.Request{Name: "io.test/notes"})
	expect(t, "code without the key", core.CodeOf(err), core.CodeCredentialsRequired)
	if _, err := os.Stat(filepath.Join(npm, "said")); err == nil {
		t.Error("npm ran although a value was missing")
	}
	app := install(t, y, source.Request{Name: "io.test/notes", Env: map[string]core.Secret{"API_KEY": "hunter2"}})
	expectApp(t, "result", app, core.App{Name: "notes", BundleName: "io.test/notes", Version: "4.5.6", Status: core.StateRunning, Type: "plain", ToolCount: 5})
	said, _ := os.ReadFile(filepath.Join(npm, "said"))
	for _, want := range []string{"--ignore-scripts", "@test/notes@4.5.7", "--prefix " + home} {
		if !strings.Contains(string(said), want) {
			t.Errorf("npm was called with %q, without %q", said, want)
		}
	}
	saw, _ := os.ReadFile(filepath.Join(npm, "saw"))
	if names := strings.Fields(string(saw)); slices.Contains(names, "CANARY") || slices.Contains(names, "API_KEY") || !slices.Contains(names, "https_proxy") {
		t.Errorf("npm saw %v", names)
	}
	run, _ := os.ReadFile(filepath.Join(node, "said"))
	dir := filepath.Join(home, "apps", "notes", "bundle")
	if !strings.Contains(string(run), "--no-warnings "+dir) || !strings.Contains(string(run), "/node_modules/@test/notes/dist/main.js --port=0 {odd}") {
		t.Errorf("node was called with %q", run)
	}
	if key, _ := look(t, y, "notes").env("API_KEY"); key != "hunter2" {
		t.Errorf("API_KEY is %q", key)
	}
}

func TestAPyPIProjectIsInstalledOnceIntoAVirtualEnvironment(t *testing.T) {
	script := fmt.Sprintf(`#!/bin/sh
exec "%s" %s %s`, selfPath(t), bundleArg, modeNormal)
	uv := installer(t, "uv", `if [ "$1" = venv ]; then mkdir -p "$3/bin"; else cat > "$(dirname "$7")/test-notes" <<'END'
`+script+`
END
chmod +x "$(dirname "$7")/test-notes"; fi`)
	packages := memoryRegistry{packages: map[string]registry.Package{"io.test/notes": {
		Name: "io.test/notes", Version: "4.5.6", Kind: registry.KindPyPI, Identifier: "test-notes",
	}}}
	y, _ := realManager(t, t.TempDir(), newMemoryRecords(), func(o *Options) {
		o.Registries = []source.NamedRegistry{{Name: "packages", Registry: packages}}
		o.HostEnv["PATH"] = uv + ":" + o.HostEnv["PATH"]
	})
	app := install(t, y, source.Request{Name: "io.test/notes"})
	expect(t, "status", app.Status, core.StateRunning)
	said, _ := os.ReadFile(filepath.Join(uv, "said"))
	for _, want := range []string{"venv --quiet", "--only-binary :all:", "test-notes==4.5.6"} {
		if !strings.Contains(string(said), want) {
			t.Errorf("uv was called with %q, without %q", said, want)
		}
	}
}

func TestAPackageThatNPMDoesNotKnowIsReportedInOneLine(t *testing.T) {
	npm := installer(t, "npm", "printf 'npm error code E404\\nnpm error 404 Not Found\\nnpm error A complete log is elsewhere\\n' >&2; exit 1")
	y, _ := realManager(t, t.TempDir(), newMemoryRecords(), func(o *Options) { o.HostEnv["PATH"] = npm + ":/usr/bin:/bin" })
	_, err := y.Install(t.Context(), ws, source.Request{NPM: "notes@9.9.9"})
	expect(t, "code", core.CodeOf(err), core.CodeInstallFailed)
	expect(t, "message", core.TextOf(err), `npm has no version 9.9.9 of the package "notes", or the package needs a login`)
}

func TestTheErrorOfAnInstallerIsShownAndAMissingInstallerIsNamed(t *testing.T) {
	pkg := registry.Package{Name: "io.test/notes", Version: "4.5.6", Kind: registry.KindNPM, Identifier: "notes"}
	packages := memoryRegistry{packages: map[string]registry.Package{pkg.Name: pkg}}
	for _, c := range []struct{ name, path, says string }{
		{"missing", t.TempDir(), "npm is needed to install io.test/notes"},
		{"failing", installer(t, "npm", "echo 'npm error 404 no such package' >&2; exit 1") + ":/usr/bin:/bin", "404 no such package"},
		{"without a command", installer(t, "npm", `mkdir -p "$3/node_modules/notes"; echo '{}' > "$3/node_modules/notes/package.json"`) + ":/usr/bin:/bin", "has no command"},
		{"a command outside the package", installer(t, "npm", `mkdir -p "$3/node_modules/notes"; echo '{"bin":"../../x.js"}' > "$3/node_modules/notes/package.json"`) + ":/usr/bin:/bin", "points outside the package"},
	} {
		t.Run(c.name, func(t *testing.T) {
			home := t.TempDir()
			y, _ := realManager(t, home, newMemoryRecords(), func(o *Options) {
				o.Registries = []source.NamedRegistry{{Name: "packages", Registry: packages}}
				o.HostEnv["PATH"] = c.path
			})
			_, err := y.Install(t.Context(), ws, source.Request{Name: pkg.Name})
			expect(t, "code", core.CodeOf(err), core.CodeInstallFailed)
			if !strings.Contains(core.TextOf(err), c.says) {
				t.Errorf("the message does not say %q: %v", c.says, err)
			}
			if _, err := os.Stat(filepath.Join(home, "apps", "notes")); !os.IsNotExist(err) {
				t.Errorf("something was left behind: %v", err)
			}
		})
	}
}
