package console

import (
	"archive/zip"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// greeter returns the manifest of a bundle around testdata/greeter.mjs.
func greeter(t *testing.T, name, title string, userConfig map[string]any, env map[string]string) []byte {
	t.Helper()
	raw, err := json.Marshal(map[string]any{
		"manifest_version": "0.3", "name": "@hotel/" + name, "display_name": title, "version": "1.0.0",
		"description": "Greets the guests of the hotel in their language", "author": map[string]string{"name": "Hotel"},
		"server": map[string]any{"type": "node", "entry_point": "greeter.mjs", "mcp_config": map[string]any{
			"command": "node", "args": []string{"${__dirname}/greeter.mjs"}, "env": env,
		}},
		"user_config": userConfig,
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// program returns the source of testdata/greeter.mjs.
func program(t *testing.T) []byte {
	t.Helper()
	code, err := os.ReadFile(filepath.Join("testdata", "greeter.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// unpacked writes a bundle to a directory.
func unpacked(t *testing.T, manifest []byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string][]byte{"manifest.json": manifest, "greeter.mjs": program(t)} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// packed writes a bundle to an .mcpb file.
func packed(t *testing.T, path string, manifest []byte) string {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	archive := zip.NewWriter(file)
	for name, content := range map[string][]byte{"manifest.json": manifest, "greeter.mjs": program(t)} {
		entry, err := archive.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := entry.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// option returns the user_config of a bundle that requires one text value.
func option(name, title, about string) map[string]any {
	return map[string]any{name: map[string]any{"type": "string", "title": title, "description": about, "required": true}}
}

// An admin imports, uploads, drops, finds, configures, restarts, updates, stops, starts and uninstalls apps, and
// accepts the changed definition of a tool.
func TestAppsAreInstalledConfiguredUpdatedAndUninstalledInTheBrowser(t *testing.T) {
	t.Parallel()
	code, err := filepath.Abs(filepath.Join("testdata", "greeter.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	files, registry := t.TempDir(), t.TempDir()
	packed(t, filepath.Join(registry, "concierge.mcpb"), greeter(t, "concierge", "Concierge", option("greeting", "Greeting", "The greeting that the tool returns."), map[string]string{"GREETING_TOKEN": "${user_config.greeting}"}))
	packed(t, filepath.Join(registry, "porter.mcpb"), greeter(t, "porter", "Porter", nil, nil))
	s := serve(t, "registries:\n  - {name: internal, adapter: directory, dir: '"+registry+"'}\n")
	greeting := unpacked(t, greeter(t, "greeter", "Greeter", option("greeting", "Greeting", "The greeting that the tool returns."), map[string]string{"GREETING_TOKEN": "${user_config.greeting}"}))
	described := unpacked(t, greeter(t, "receptionist", "Receptionist", option("about", "Description", "What the tool says of itself."), map[string]string{"GREETING_ABOUT": "${user_config.about}"}))
	s.Object(t, "POST", "/v1/apps/install", map[string]any{"path": greeting, "env": map[string]string{"greeting": "first greeting"}})
	s.Object(t, "POST", "/v1/apps/install", map[string]any{"path": described, "env": map[string]string{"about": "Speaks French."}})
	browse(t, "manage.mjs", s, map[string]any{
		"program": code, "bundle": greeting,
		"uploaded": packed(t, filepath.Join(files, "uploaded.mcpb"), greeter(t, "uploaded", "", nil, nil)),
		"dropped":  packed(t, filepath.Join(files, "dropped.mcpb"), greeter(t, "dropped", "", option("greeting", "Greeting", "The greeting that the tool returns."), map[string]string{"GREETING_TOKEN": "${user_config.greeting}"})),
	})
}
