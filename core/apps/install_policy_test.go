package apps

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// notesRegistry returns a registry with @test/notes, under a name from the configuration.
func notesRegistry(t *testing.T, name string) source.NamedRegistry {
	t.Helper()
	pkg, raw := mcpb(t, "@test/notes")
	return source.NamedRegistry{Name: name, Registry: memoryRegistry{packages: map[string]registry.Package{pkg.Name: pkg}, files: map[string][]byte{pkg.Name: raw}}}
}

// refused expects core.CodeForbidden and a substring of the message.
func refused(t *testing.T, what string, err error, text string) {
	t.Helper()
	if core.CodeOf(err) != core.CodeForbidden || !strings.Contains(core.TextOf(err), text) {
		t.Errorf("%s: %v, want forbidden with %q", what, err, text)
	}
}

func TestAWorkspaceAdminInstallsByNameOnlyIfTheSandboxWorks(t *testing.T) {
	for _, level := range []sandbox.Level{sandbox.LevelNone, sandbox.LevelLandlock, sandbox.LevelNamespaces} {
		main := notesRegistry(t, "main")
		y, _ := realManager(t, t.TempDir(), newMemoryRecords(), func(o *Options) {
			o.Registries = []source.NamedRegistry{main}
			o.Confinement.Probe.Level, o.Confinement.Probe.Reason = level, "no Landlock"
			o.Sandbox.Level = level
		})
		found := &source.Candidate{Record: core.Installation{Name: "notes", BundleName: "@test/notes"}}
		err := y.checkConfined(source.Order{Workspace: ws, Restricted: true}, found)
		if level > sandbox.LevelNone {
			if err != nil {
				t.Errorf("at %s: %v", level, err)
			}
			continue
		}
		_, err = y.Install(t.Context(), ws, source.Request{Name: "@test/notes", Restricted: true})
		refused(t, "a workspace admin", err, "this server cannot confine apps (no Landlock)")
		install(t, y, source.Request{Name: "@test/notes"}) // an organization admin
		file, err := os.ReadFile(bundleFile(t, "@test/notes", modeNormal, map[string]any{"version": "2.0.0"}))
		if err != nil {
			t.Fatal(err)
		}
		m := main.Registry.(memoryRegistry)
		next := m.packages["@test/notes"]
		next.Version, next.SHA256, next.Size = "2.0.0", sha256Of(file), int64(len(file))
		m.packages["@test/notes"], m.files["@test/notes"] = next, file
		_, err = y.Update(t.Context(), ws, "notes", source.UpdateRequest{Restricted: true})
		refused(t, "an update by a workspace admin", err, "this server cannot confine apps")
	}
}

func TestEachRoleInstallsFromItsRegistries(t *testing.T) {
	policy := config.Install{Registries: config.InstallRegistries{WorkspaceAdmin: []string{"curated"}, OrganizationAdmin: []string{"curated", "public"}}}
	y, _ := realManager(t, t.TempDir(), newMemoryRecords(), func(o *Options) {
		o.Registries, o.Install = []source.NamedRegistry{notesRegistry(t, "public"), {Name: "curated", Registry: memoryRegistry{}}}, policy
	})
	_, err := y.Install(t.Context(), ws, source.Request{Name: "@test/notes", Restricted: true})
	if core.CodeOf(err) != core.CodeInstallFailed || !strings.Contains(core.TextOf(err), "no configured registry (curated) has @test/notes") {
		t.Errorf("from a registry of the other role: %v", err)
	}
	install(t, y, source.Request{Name: "@test/notes"})
	policy.Registries.WorkspaceAdmin = []string{}
	y.SetInstallPolicy(policy)
	_, err = y.Install(t.Context(), ws, source.Request{Name: "@test/notes", Restricted: true})
	refused(t, "without a registry", err, "install.registries")
}

func TestSourcesThatNoPatternAllowsAreNeverInstalled(t *testing.T) {
	y, _ := realManager(t, t.TempDir(), newMemoryRecords(), func(o *Options) {
		o.Registries = []source.NamedRegistry{notesRegistry(t, "main")}
		o.Install = config.Install{Allow: []string{"name:@test/notes"}}
	})
	install(t, y, source.Request{Name: "@test/notes"})
	dir := bundleDir(t, "other", modeNormal, nil)
	for what, r := range map[string]source.Request{
		"another name": {Name: "@test/other"}, "a path": {Path: dir}, "an address": {URL: "https://mcp.example.com/"}, "a command": {Command: "true"},
		"a package": {NPM: "notes"}, "a command that is a package": {Command: "npx", Args: []string{"-y", "notes"}},
	} {
		_, err := y.Install(t.Context(), ws, r)
		refused(t, what, err, "install.allow")
	}
	raw, err := os.ReadFile(bundleFile(t, "uploaded", modeNormal, nil))
	if err != nil {
		t.Fatal(err)
	}
	_, err = y.InstallUpload(t.Context(), ws, bytes.NewReader(raw), source.Request{})
	refused(t, "an upload", err, "install.allow")
	result, err := y.Import(t.Context(), ws, source.ImportRequest{MCPServers: map[string]json.RawMessage{"x": json.RawMessage(`{"command":"npx","args":["-y","notes"]}`)}})
	if err != nil || len(result.Servers) != 1 || result.Servers[0].Error != string(core.CodeForbidden) {
		t.Errorf("an import: %+v, %v", result, err)
	}
	y.SetInstallPolicy(config.Install{Allow: []string{"npm:*"}})
	_, err = y.Update(t.Context(), ws, "notes", source.UpdateRequest{})
	refused(t, "an update of an app that is no longer allowed", err, "install.allow")
}
