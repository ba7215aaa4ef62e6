package harness

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
)

// MCP servers that their authors published. They are installed in test/npm.
const (
	Everything = "@modelcontextprotocol/server-everything"
	Filesystem = "@modelcontextprotocol/server-filesystem"
	Memory     = "@modelcontextprotocol/server-memory"
	BasicReact = "@modelcontextprotocol/server-basic-react"
)

// EntryPoint returns the path of a package's script, relative to the directory that contains node_modules.
func EntryPoint(pkg string) string { return "node_modules/" + pkg + "/dist/index.js" }

// NodeManifest returns the manifest of a bundle that runs an npm package with the given arguments.
func NodeManifest(name, pkg string, args ...string) map[string]any {
	return map[string]any{"name": "@e2e/" + name, "server": map[string]any{
		"type": "node", "entry_point": EntryPoint(pkg),
		"mcp_config": map[string]any{"command": "node", "args": append([]string{"${__dirname}/" + EntryPoint(pkg)}, args...)},
	}}
}

// NodeBundle writes a bundle directory that uses the node_modules of test/npm. If several servers share the installed
// bundles, NodeBundle copies the package and its dependencies instead.
func NodeBundle(t *testing.T, manifest map[string]any) string {
	t.Helper()
	dir := Bundle(t, manifest)
	if Databases.Required() {
		script, _ := manifest["server"].(map[string]any)["entry_point"].(string)
		pkg, _, _ := strings.Cut(strings.TrimPrefix(script, "node_modules/"), "/dist/")
		copyPackage(t, dir, pkg)
		return dir
	}
	if err := os.Symlink(filepath.Join(testenv.Node(t), "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// PackedBundle packs an npm package and its dependencies with the official tool. It returns the path of the .mcpb file.
func PackedBundle(t *testing.T, pkg string, manifest map[string]any) string {
	t.Helper()
	npm, dir := testenv.Node(t), Bundle(t, manifest)
	copyPackage(t, dir, pkg)
	file := filepath.Join(t.TempDir(), "packed.mcpb")
	pack := exec.CommandContext(t.Context(), "node", filepath.Join(npm, "node_modules/@anthropic-ai/mcpb/dist/cli/cli.js"), "pack", dir, file)
	if out, err := pack.CombinedOutput(); err != nil {
		t.Fatalf("mcpb pack: %v\n%s", err, out)
	}
	return file
}
