package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
)

type listed struct{ Tools []string }

func TestPublishedServersRunAsBundles(t *testing.T) {
	t.Parallel()
	s := serve(t)
	allowed := []string{t.TempDir(), t.TempDir()}
	write(t, filepath.Join(allowed[1], "note.txt"), "a note")
	files := nodeManifest("filesystem", filesystem, "${user_config.allowed_directories}")
	files["user_config"] = map[string]any{"allowed_directories": map[string]any{
		"type": "directory", "multiple": true, "required": true, "title": "Allowed directories", "description": "What it may read and write.",
	}}
	filesDir := nodeBundle(t, files)

	if a := s.do(t, "POST", "/v1/apps/install", map[string]any{"path": filesDir}); a.status != 400 || a.object(t)["error"] != "credentials_required" ||
		!strings.Contains(a.body, `"missing":[{"name":"allowed_directories","title":"Allowed directories"`) {
		t.Errorf("install without what the bundle asks for: %d %s", a.status, a.body)
	}
	s.install(t, map[string]any{"path": packed(t, everything, nodeManifest("everything", everything, "stdio"))})
	s.install(t, map[string]any{"path": filesDir, "env": map[string]any{"allowed_directories": `["` + strings.Join(allowed, `","`) + `"]`}})
	s.install(t, map[string]any{"path": nodeBundle(t, nodeManifest("memory", memory))})

	apps := s.apps(t)
	root := testenv.Node(t)
	for name, args := range map[string][]string{
		"everything": {entry(everything), "stdio"}, "filesystem": {entry(filesystem), allowed[0]}, "memory": {entry(memory)},
	} {
		args[0] = filepath.Join(root, args[0])
		direct := runScript[listed](t, "client.mjs", append([]string{"stdio", "node"}, args...)...)
		if got := apps[name]; got.Status != "running" || got.ToolCount != len(direct.Tools) || got.ToolCount == 0 || got.BundleName != "@e2e/"+name {
			t.Errorf("%s is %+v; asked directly it has the tools %v", name, got, direct.Tools)
		}
		composed := runScript[listed](t, "client.mjs", "tools", s.url, workspace)
		for _, tool := range direct.Tools {
			if !slices.Contains(composed.Tools, name+"__"+tool) {
				t.Errorf("/mcp does not list %s__%s", name, tool)
			}
		}
	}

	if got := s.call(t, "everything", "echo", map[string]any{"message": "hello"}); got != "Echo: hello" {
		t.Errorf("echo says %v", got)
	}
	if got := s.call(t, "filesystem", "read_text_file", map[string]any{"path": filepath.Join(allowed[1], "note.txt")}); got != "a note" {
		t.Errorf("the note is %v", got)
	}
	if a := s.do(t, "POST", "/v1/tools/call", `{"server":"filesystem","tool":"read_text_file","arguments":{"path":"/etc/hostname"}}`); a.status != 200 || a.object(t)["isError"] != true {
		t.Errorf("a file outside: %d %s", a.status, a.body)
	}
	s.call(t, "memory", "create_entities", map[string]any{"entities": []any{map[string]any{"name": "Ada", "entityType": "person", "observations": []any{}}}})
	if got := s.call(t, "memory", "read_graph", nil); !strings.Contains(toText(t, got), "Ada") {
		t.Errorf("the memory holds %v", got)
	}
}

func TestTheOfficialClientIsServedThroughMCP(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.install(t, map[string]any{"path": nodeBundle(t, nodeManifest("everything", everything, "stdio"))})
	s.install(t, map[string]any{"path": goBundle(t, "grower", plain)})
	events := s.listen(t)
	file := s.shared("grower", "last")

	seen := runScript[struct {
		Server           string
		Tools, Progress  []string
		Echo, Cancelled  string
		Changed, Failure bool
		Mistaken         int
		Ping             map[string]any
		Unknown          int
	}](t, "client.mjs", "tour", s.url, workspace, file)

	if !slices.IsSorted(serversOf(seen.Tools)) || !slices.Contains(seen.Tools, "everything__echo") || !slices.Contains(seen.Tools, "system__list_apps") {
		t.Errorf("tools: %v", seen.Tools)
	}
	if seen.Server != "ropewalk" || seen.Echo != "Echo: hello" || seen.Ping == nil || len(seen.Ping) != 0 || seen.Mistaken != 0 || !seen.Failure || seen.Unknown != -32602 {
		t.Errorf("%+v", seen)
	}
	want := []string{"1 of 4", "2 of 4", "3 of 4", "4 of 4", "Long running operation completed. Duration: 1 seconds, Steps: 4."}
	if !slices.Equal(seen.Progress, want) {
		t.Errorf("progress came as %q", seen.Progress)
	}
	if !seen.Changed {
		t.Error("the tool that was added is not listed")
	}
	if seen.Cancelled != "given up" || !eventually(patience, func() bool { _, err := os.Stat(file + ".cancelled"); return err == nil }) {
		t.Errorf("the cancelled call was %s, and its tool was not notified", seen.Cancelled)
	}
	// Of all those calls, one came from an agent, succeeded, and was not announced as read-only.
	if e := events.next(t); !strings.HasPrefix(e, `data.changed {"server":"grower","timestamp":"`) || !strings.HasSuffix(e, `Z","tool":"grow"}`) {
		t.Errorf("event %s", e)
	}
}

func TestABundleIsInstalledByItsNameInARegistry(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file, err := os.ReadFile(packed(t, memory, nodeManifest("notes", memory)))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "notes.mcpb"), string(file))
	s := serve(t, config("registries:\n- {name: local, adapter: directory, dir: "+folder+"}\n"))
	if a := s.do(t, "POST", "/v1/apps/install", `{"name":"@e2e/nothing"}`); a.status != 500 || a.object(t)["error"] != "install_failed" {
		t.Errorf("a name that no registry knows: %d %s", a.status, a.body)
	}
	if got := s.install(t, map[string]any{"name": "@e2e/notes"}); got.Name != "notes" || got.BundleName != "@e2e/notes" || got.Version != "1.0.0" || got.ToolCount == 0 {
		t.Errorf("the app is %+v", got)
	}
	s.call(t, "notes", "read_graph", nil)
}

func TestAViewIsServed(t *testing.T) {
	t.Parallel()
	s := serve(t)
	shown := s.install(t, map[string]any{"path": nodeBundle(t, nodeManifest("react", basicReact, "--stdio"))})
	if shown.UI == nil || !strings.HasPrefix(shown.UI.PrimaryView.ResourceURI, "ui://") {
		t.Fatalf("the app is %+v", shown)
	}
	view := s.do(t, "GET", "/v1/apps/react/resources/primary", nil)
	if view.status != 200 || !strings.HasPrefix(view.header.Get("Content-Type"), "text/html") || !strings.Contains(strings.ToLower(view.body), "<!doctype html>") {
		t.Errorf("the view: %d %v %.100s", view.status, view.header, view.body)
	}
	again := s.do(t, "GET", "/v1/apps/react/resources/"+strings.TrimPrefix(shown.UI.PrimaryView.ResourceURI, "ui://react/"), nil)
	if again.status != 200 || again.body != view.body {
		t.Errorf("the same view by its URI: %d", again.status)
	}
	if a := s.do(t, "GET", "/v1/apps/react/resources/nothing", nil); a.status != 404 || a.object(t)["error"] != "resource_not_found" {
		t.Errorf("a view that is not there: %d %s", a.status, a.body)
	}
}

// serversOf are the servers of full tool names, in their order.
func serversOf(names []string) []string {
	var servers []string
	for _, name := range names {
		server, _, _ := strings.Cut(name, "__")
		servers = append(servers, server)
	}
	return servers
}
