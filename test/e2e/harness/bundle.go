package harness

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// GoTools is the number of tools of a Plain bundle before the tool named grow is called.
const GoTools = 4

// GoBundle writes a binary bundle (MCPB) and returns its directory. The bundle runs this executable as a kind of
// bundle, such as Plain.
func GoBundle(t *testing.T, name, character string) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Bundle(t, map[string]any{"name": "@e2e/" + name, "server": map[string]any{
		"type": "binary", "entry_point": "server/bundle",
		"mcp_config": map[string]any{"command": exe, "args": []string{bundleArg, character}},
	}})
}

// Bundle writes a bundle directory. The manifest has the given members in addition to the required ones.
func Bundle(t *testing.T, manifest map[string]any) string {
	t.Helper()
	whole := map[string]any{
		"manifest_version": "0.3", "version": "1.0.0", "description": "A bundle for the tests.", "author": map[string]any{"name": "e2e"},
	}
	for key, value := range manifest {
		whole[key] = value
	}
	raw, err := json.MarshalIndent(whole, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	WriteFile(t, filepath.Join(dir, "manifest.json"), string(raw))
	return dir
}
