package sample

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// WriteBundle writes the sample's bundle directory (MCPB, manifest_version 0.3) to dir. The server in the manifest is
// the given executable with the single argument arg. It does not rewrite an identical manifest, so that the app's
// files are seen as unchanged.
func WriteBundle(dir, executable, arg, version string) error {
	manifest, err := json.MarshalIndent(map[string]any{
		"manifest_version": "0.3",
		"name":             "@ropewalk/sample",
		"display_name":     "Sample",
		"version":          version,
		"description":      "A small MCP server inside the ropewalk executable: a plain tool, one with progress, one that fails, and a view.",
		"author":           map[string]any{"name": "Ropewalk"},
		"server": map[string]any{
			"type": "binary", "entry_point": "ropewalk",
			"mcp_config": map[string]any{"command": executable, "args": []string{arg}},
		},
		"_meta": map[string]any{
			"io.github.ropewalk/host": map[string]any{
				"name": "Sample", "icon": "👋", "primaryView": map[string]any{"resourceUri": viewURI},
			},
		},
	}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // the mode that the app needs; otherwise its first start would change it
		return err
	}
	file := filepath.Join(dir, "manifest.json")
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, manifest) {
		return nil
	}
	return renameio.WriteFile(file, manifest, 0o644)
}
