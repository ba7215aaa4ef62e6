package install

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

func TestPublishedServersRunAsBundles(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	allowed := []string{t.TempDir(), t.TempDir()}
	harness.WriteFile(t, filepath.Join(allowed[1], "note.txt"), "a note")
	files := harness.NodeManifest("filesystem", harness.Filesystem, "${user_config.allowed_directories}")
	files["user_config"] = map[string]any{"allowed_directories": map[string]any{
		"type": "directory", "multiple": true, "required": true, "title": "Allowed directories", "description": "The directories that the server may read and write.",
	}}
	filesDir := harness.NodeBundle(t, files)

	if a := s.Do(t, "POST", "/v1/apps/install", map[string]any{"path": filesDir}); a.Status != 400 || a.Object(t)["error"] != "credentials_required" ||
		!strings.Contains(a.Body, `"missing":[{"name":"allowed_directories","title":"Allowed directories"`) {
		t.Errorf("install without the values that the bundle requires: %d %s", a.Status, a.Body)
	}
	s.Install(t, map[string]any{"path": harness.PackedBundle(t, harness.Everything, harness.NodeManifest("everything", harness.Everything, "stdio"))})
	s.Install(t, map[string]any{"path": filesDir, "env": map[string]any{"allowed_directories": `["` + strings.Join(allowed, `","`) + `"]`}})
	s.Install(t, map[string]any{"path": harness.NodeBundle(t, harness.NodeManifest("memory", harness.Memory))})

	apps := s.Apps(t)
	root := testenv.Node(t)
	for name, args := range map[string][]string{
		"everything": {harness.EntryPoint(harness.Everything), "stdio"}, "filesystem": {harness.EntryPoint(harness.Filesystem), allowed[0]}, "memory": {harness.EntryPoint(harness.Memory)},
	} {
		args[0] = filepath.Join(root, args[0])
		direct := harness.RunScript[harness.ListedTools](t, "typescript.mjs", append([]string{"stdio", "node"}, args...)...)
		if got := apps[name]; got.Status != "running" || got.ToolCount != len(direct.Tools) || got.ToolCount == 0 || got.BundleName != "@e2e/"+name {
			t.Errorf("%s is %+v; without Ropewalk, it has the tools %v", name, got, direct.Tools)
		}
		composed := harness.RunScript[harness.ListedTools](t, "typescript.mjs", "tools", s.URL+"/mcp/"+harness.Workspace)
		for _, tool := range direct.Tools {
			if !slices.Contains(composed.Tools, name+"__"+tool) {
				t.Errorf("/mcp does not list %s__%s", name, tool)
			}
		}
	}

	if got := s.Call(t, "everything", "echo", map[string]any{"message": "hello"}); got != "Echo: hello" {
		t.Errorf("echo returned %v", got)
	}
	if got := s.Call(t, "filesystem", "read_text_file", map[string]any{"path": filepath.Join(allowed[1], "note.txt")}); got != "a note" {
		t.Errorf("read_text_file returned %v", got)
	}
	if a := s.Do(t, "POST", "/v1/tools/call", `{"server":"filesystem","tool":"read_text_file","arguments":{"path":"/etc/hostname"}}`); a.Status != 200 || a.Object(t)["isError"] != true {
		t.Errorf("a file outside the directories: %d %s", a.Status, a.Body)
	}
	testenv.NeedsNamespaces(t) // memory writes to its bundle, so the bundle needs a writable layer
	s.Call(t, "memory", "create_entities", map[string]any{"entities": []any{map[string]any{"name": "Ada", "entityType": "person", "observations": []any{}}}})
	if got := s.Call(t, "memory", "read_graph", nil); !strings.Contains(harness.ToText(t, got), "Ada") {
		t.Errorf("the memory contains %v", got)
	}
}

func TestABundleIsInstalledByNameFromARegistry(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file, err := os.ReadFile(harness.PackedBundle(t, harness.Memory, harness.NodeManifest("notes", harness.Memory)))
	if err != nil {
		t.Fatal(err)
	}
	harness.WriteFile(t, filepath.Join(folder, "notes.mcpb"), string(file))
	s := harness.Serve(t, harness.Config("registries:\n- {name: local, adapter: directory, dir: "+folder+"}\n"))
	if a := s.Do(t, "POST", "/v1/apps/install", `{"name":"@e2e/nothing"}`); a.Status != 500 || a.Object(t)["error"] != "install_failed" {
		t.Errorf("a name that is in no registry: %d %s", a.Status, a.Body)
	}
	if got := s.Install(t, map[string]any{"name": "@e2e/notes"}); got.Name != "notes" || got.BundleName != "@e2e/notes" || got.Version != "1.0.0" || got.ToolCount == 0 {
		t.Errorf("the app is %+v", got)
	}
	s.Call(t, "notes", "read_graph", nil)
}

func TestAViewIsServed(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	shown := s.Install(t, map[string]any{"path": harness.NodeBundle(t, harness.NodeManifest("react", harness.BasicReact, "--stdio"))})
	if shown.UI == nil || !strings.HasPrefix(shown.UI.PrimaryView.ResourceURI, "ui://") {
		t.Fatalf("the app is %+v", shown)
	}
	view := s.Do(t, "GET", "/v1/apps/react/resources/primary", nil)
	if view.Status != 200 || !strings.HasPrefix(view.Header.Get("Content-Type"), "text/html") || !strings.Contains(strings.ToLower(view.Body), "<!doctype html>") {
		t.Errorf("the view: %d %v %.100s", view.Status, view.Header, view.Body)
	}
	again := s.Do(t, "GET", "/v1/apps/react/resources/"+strings.TrimPrefix(shown.UI.PrimaryView.ResourceURI, "ui://react/"), nil)
	if again.Status != 200 || again.Body != view.Body {
		t.Errorf("the view by its URI: %d", again.Status)
	}
	if a := s.Do(t, "GET", "/v1/apps/react/resources/nothing", nil); a.Status != 404 || a.Object(t)["error"] != "resource_not_found" {
		t.Errorf("a view that does not exist: %d %s", a.Status, a.Body)
	}
}
