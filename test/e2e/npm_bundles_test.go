package e2e

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
)

// The bundles here are what people run: servers as their authors publish them, from test/npm.
const (
	everything = "@modelcontextprotocol/server-everything"
	filesystem = "@modelcontextprotocol/server-filesystem"
	memory     = "@modelcontextprotocol/server-memory"
	basicReact = "@modelcontextprotocol/server-basic-react"
)

// entry is the script of a package, from the folder that holds node_modules.
func entry(pkg string) string { return "node_modules/" + pkg + "/dist/index.js" }

// nodeManifest describes a bundle around a package, whose server gets these arguments.
func nodeManifest(name, pkg string, args ...string) map[string]any {
	return map[string]any{"name": "@e2e/" + name, "server": map[string]any{
		"type": "node", "entry_point": entry(pkg),
		"mcp_config": map[string]any{"command": "node", "args": append([]string{"${__dirname}/" + entry(pkg)}, args...)},
	}}
}

// nodeBundle is a bundle directory whose node_modules are those of test/npm. Where several servers may
// share what is installed, a bundle must hold all that it needs.
func nodeBundle(t *testing.T, manifest map[string]any) string {
	t.Helper()
	dir := bundle(t, manifest)
	if databases.Wanted() {
		script, _ := manifest["server"].(map[string]any)["entry_point"].(string)
		pkg, _, _ := strings.Cut(strings.TrimPrefix(script, "node_modules/"), "/dist/")
		fill(t, dir, pkg)
		return dir
	}
	if err := os.Symlink(filepath.Join(testenv.Node(t), "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// packed is a .mcpb of a package with everything it needs, packed by the tool that authors use.
func packed(t *testing.T, pkg string, manifest map[string]any) string {
	t.Helper()
	npm, dir := testenv.Node(t), bundle(t, manifest)
	fill(t, dir, pkg)
	file := filepath.Join(t.TempDir(), "packed.mcpb")
	pack := exec.CommandContext(t.Context(), "node", filepath.Join(npm, "node_modules/@anthropic-ai/mcpb/dist/cli/cli.js"), "pack", dir, file)
	if out, err := pack.CombinedOutput(); err != nil {
		t.Fatalf("mcpb pack: %v\n%s", err, out)
	}
	return file
}

// fill puts a package and everything it needs into a bundle directory.
func fill(t *testing.T, dir, pkg string) {
	t.Helper()
	npm := testenv.Node(t)
	for _, from := range dependencies(t, npm, pkg) {
		within, _ := filepath.Rel(npm, from)
		to := filepath.Join(dir, within)
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.CopyFS(to, withoutModules{os.DirFS(from)})); err != nil {
			t.Fatal(err)
		}
	}
}

// dependencies are the folders of a package and of all that it needs, found as Node finds them.
func dependencies(t *testing.T, root, pkg string) []string {
	t.Helper()
	var found []string
	seen := map[string]bool{}
	var visit func(from, name string, optional bool)
	visit = func(from, name string, optional bool) {
		for dir := from; strings.HasPrefix(dir, root); dir = filepath.Dir(dir) {
			at := filepath.Join(dir, "node_modules", name)
			raw, err := os.ReadFile(filepath.Join(at, "package.json"))
			if err != nil {
				continue
			}
			if seen[at] {
				return
			}
			seen[at] = true
			found = append(found, at)
			var needs struct{ Dependencies, PeerDependencies map[string]string }
			if err := json.Unmarshal(raw, &needs); err != nil {
				t.Fatal(err)
			}
			for need := range needs.Dependencies {
				visit(at, need, false)
			}
			for need := range needs.PeerDependencies {
				visit(at, need, true)
			}
			return
		}
		if !optional {
			t.Fatalf("%s needs %s, which is not installed", from, name)
		}
	}
	visit(root, pkg, false)
	return found
}

// runScript runs a script of this folder beside the packages of test/npm and returns what it
// printed, which is JSON.
func runScript[T any](t *testing.T, script string, args ...string) T {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", append([]string{script}, args...)...)
	cmd.Env = append(os.Environ(), "NODE_MODULES="+filepath.Join(testenv.Node(t), "node_modules"))
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", script, strings.Join(args, " "), err, out, said.String())
	}
	var result T
	if err := json.Unmarshal(out, &result); err != nil {
		t.Fatalf("%s %s printed %q: %v", script, strings.Join(args, " "), out, err)
	}
	return result
}

// ofNoUse are files that no program runs: half of most packages.
var ofNoUse = regexp.MustCompile(`\.(map|d\.[cm]?ts|md)$`)

// withoutModules is a package's own files that are of use: what it needs is copied beside it.
type withoutModules struct{ fs.FS }

func (w withoutModules) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(w.FS, name)
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		return e.Name() == "node_modules" || ofNoUse.MatchString(e.Name())
	}), err
}
