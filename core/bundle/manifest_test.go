package bundle

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// minimal returns a manifest with only the required fields, as a document that tests can change.
func minimal() map[string]any {
	return map[string]any{
		"manifest_version": "0.3",
		"name":             "@acme/hello",
		"version":          "1.2.3",
		"description":      "says hello",
		"author":           map[string]any{"name": "Acme"},
		"server": map[string]any{
			"type":        "node",
			"entry_point": "server/index.js",
			"mcp_config":  map[string]any{"command": "node", "args": []any{"${__dirname}/server/index.js"}},
		},
	}
}

// with sets the value at a dotted path, or removes it if value is nil. It changes and returns doc.
func with(doc map[string]any, path string, value any) map[string]any {
	at := doc
	parts := strings.Split(path, ".")
	for _, part := range parts[:len(parts)-1] {
		next, ok := at[part].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[part] = next
		}
		at = next
	}
	if last := parts[len(parts)-1]; value == nil {
		delete(at, last)
	} else {
		at[last] = value
	}
	return doc
}

func encode(t testing.TB, doc map[string]any) []byte {
	t.Helper()
	raw, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func parse(t testing.TB, doc map[string]any) *Manifest {
	t.Helper()
	m, err := ParseManifest(encode(t, doc))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestAcceptedManifests(t *testing.T) {
	for name, doc := range map[string]map[string]any{
		"version 0.1":                                  with(minimal(), "manifest_version", "0.1"),
		"version 0.2":                                  with(minimal(), "manifest_version", "0.2"),
		"version 0.4":                                  with(minimal(), "manifest_version", "0.4"),
		"the older dxt_version":                        with(with(minimal(), "manifest_version", nil), "dxt_version", "0.1"),
		"unknown keys":                                 with(minimal(), "x-vendor", map[string]any{"a": 1}),
		"a uv server without mcp_config":               with(minimal(), "server", map[string]any{"type": "uv", "entry_point": "src/server.py"}),
		"a name without a scope":                       with(minimal(), "name", "hello"),
		"a title with spaces as the name":              with(minimal(), "name", "Hello World"),
		"a version with build data":                    with(minimal(), "version", "1.0.0-rc.1+build_5"),
		"a manifest's own PYTHONPATH":                  with(minimal(), "server.mcp_config.env", map[string]any{"PYTHONPATH": "${__dirname}/lib"}),
		"a variable that contains a user_config value": with(with(minimal(), "server.mcp_config.env", map[string]any{"KEY": "${user_config.k}"}), "user_config.k", map[string]any{"type": "string"}),
	} {
		t.Run(name, func(t *testing.T) {
			raw := encode(t, doc)
			m, err := ParseManifest(raw)
			if err != nil {
				t.Fatal(err)
			}
			if string(m.Raw) != string(raw) {
				t.Errorf("Raw is not the document that was read")
			}
		})
	}
}

func TestAManifestProblemNamesItsField(t *testing.T) {
	for name, c := range map[string]struct {
		path  string
		value any
		want  string
	}{
		"no manifest_version":                 {"manifest_version", nil, "manifest_version: is required"},
		"a future manifest_version":           {"manifest_version", "0.9", `manifest_version: is "0.9"`},
		"a manifest_version that is a number": {"manifest_version", 0.3, "manifest_version: is a JSON number; it must be a string"},
		"no name":                             {"name", nil, "name: is required"},
		"a name with control characters":      {"name", "a\nb", "name: must be"},
		"a name that changes direction":       {"name", "a\u202eb", "name: must be"},
		"no version":                          {"version", nil, "version: is required"},
		"a version with ..":                   {"version", "../../etc", `version: is "../../etc"`},
		"a version that is only dots":         {"version", "..", `version: is ".."`},
		"no description":                      {"description", nil, "description: is required"},
		"no author":                           {"author", nil, "author.name: is required"},
		"an author that is a string":          {"author", "Acme", "author: is a JSON string; it must be an object"},
		"no server":                           {"server", nil, "server.type: is required"},
		"an unknown server type":              {"server.type", "ruby", `server.type: is "ruby"`},
		"neither entry point nor command":     {"server", map[string]any{"type": "node"}, "server.entry_point: is required"},
		"an entry point outside the bundle":   {"server.entry_point", "../x.js", `server.entry_point: is "../x.js"`},
		"an absolute entry point":             {"server.entry_point", "/bin/sh", `server.entry_point: is "/bin/sh"`},
		"a command that is missing":           {"server.mcp_config.command", nil, "server.mcp_config.command: is required"},
		"arguments that are one string":       {"server.mcp_config.args", "-x", "server.mcp_config.args: is a JSON string; it must be a list"},
		"an argument with a NUL":              {"server.mcp_config.args", []any{"a\x00b"}, "server.mcp_config: contains a NUL"},
		"a command from user_config":          {"server.mcp_config.command", "${user_config.sh}", "server.mcp_config.command: must not come from user_config"},
		"a loader variable from user_config":  {"server.mcp_config.env", map[string]any{"LD_PRELOAD": "${user_config.lib}"}, "server.mcp_config.env.LD_PRELOAD: must not"},
		"an override for no platform":         {"server.mcp_config.platform_overrides", map[string]any{"beos": map[string]any{}}, "platform_overrides.beos: is not a platform"},
		"an override's command from user_config": {"server.mcp_config.platform_overrides", map[string]any{"linux": map[string]any{"command": "${user_config.sh}"}},
			"platform_overrides.linux.command: must not come"},
		"an unknown platform":                     {"compatibility.platforms", []any{"linux", "plan9"}, `compatibility.platforms[1]: is "plan9"`},
		"an invalid runtime range":                {"compatibility.runtimes", map[string]any{"node": "latest please"}, "compatibility.runtimes.node: is"},
		"a field without a type":                  {"user_config.key", map[string]any{"title": "Key"}, `user_config.key.type: is ""`},
		"a field with a strange name":             {"user_config", map[string]any{"a b": map[string]any{"type": "string"}}, "user_config.a b: must be named"},
		"a default of the wrong type":             {"user_config.n", map[string]any{"type": "number", "default": "ten"}, "user_config.n.default: must be a number"},
		"a default beyond its bounds":             {"user_config.n", map[string]any{"type": "number", "default": 11, "max": 10}, "user_config.n.default: must be at most 10"},
		"a list as the default of a single value": {"user_config.n", map[string]any{"type": "string", "default": []any{"a"}}, "user_config.n.default: must be a string"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseManifest(encode(t, with(minimal(), c.path, c.value)))
			if _, ok := errors.AsType[*ManifestError](err); !ok || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestManifestErrorsAreReportedTogether(t *testing.T) {
	_, err := ParseManifest([]byte(`{}`))
	e, ok := errors.AsType[*ManifestError](err)
	if !ok || len(e.Problems) != 7 {
		t.Fatalf("got %v, want the 7 required fields", err)
	}
}

func TestAManifestThatIsNotJSONIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ raw, want string }{
		"nothing":          {"", "is not JSON"},
		"half a document":  {`{"name":`, "is not JSON"},
		"a list":           {`[]`, "is a JSON array"},
		"a trailing brace": {`{}}`, "at byte 3"},
		"five megabytes":   {strings.Repeat(" ", 5<<20), "is larger"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := ParseManifest([]byte(c.raw)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestReadDir(t *testing.T) {
	dir := t.TempDir()
	if _, err := ReadDir(dir); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), dir) {
		t.Fatalf("without a manifest: got %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, ManifestName), encode(t, minimal()), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := ReadDir(dir)
	if err != nil || m.Name != "@acme/hello" {
		t.Fatalf("got %v, %v", m, err)
	}
}

func TestAnEmptyDescriptionIsAccepted(t *testing.T) {
	m, err := ParseManifest([]byte(`{"manifest_version":"0.3","name":"a","version":"1.0.0","description":"","author":{"name":"b"},"server":{"type":"binary","entry_point":"x","mcp_config":{"command":"x"}}}`))
	if err != nil || m.Description != "" {
		t.Errorf("got %+v (%v)", m, err)
	}
}

func TestADuplicateMemberIsRefused(t *testing.T) {
	for _, member := range []string{`"name": "other"`, `"server": {"type": "node", "entry_point": "other.js"}`, `"server": {"type": "node", "entry_point": "a.js", "\u0065ntry_point": "b.js"}`} {
		dir := t.TempDir()
		manifest := `{"manifest_version": "0.3", "name": "a", "version": "1.0.0", "description": "d", "author": {"name": "a"}, "server": {"type": "node", "entry_point": "a.js"}, ` + member + `}`
		if err := os.WriteFile(filepath.Join(dir, ManifestName), []byte(manifest), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadDir(dir); err == nil || !strings.Contains(err.Error(), "is given more than once") {
			t.Errorf("%s: %v", member, err)
		}
	}
}
