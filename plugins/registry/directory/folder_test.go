package directory_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/registry/directory"
)

// bundle returns an .mcpb file with a manifest and one other file.
func bundle(t *testing.T, manifest map[string]any) []byte {
	t.Helper()
	raw, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, body := range map[string][]byte{"manifest.json": raw, "server/index.js": []byte("code")} {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write(body)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func manifest(name, version string) map[string]any {
	return map[string]any{"manifest_version": "0.3", "name": name, "version": version, "display_name": "Title of " + name,
		"description": "does things", "keywords": []string{"keyword"}, "author": map[string]any{"name": "Acme"}}
}

func write(t *testing.T, dir, file string, body []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, file), body, 0o600); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, dir, file, name, version string) {
	t.Helper()
	write(t, dir, file, bundle(t, manifest(name, version)))
}

// filled returns a folder of a few bundles, one of them in several versions.
func filled(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, v := range []string{"1.9.0", "1.10.0", "2.0.0-rc.1", "nightly"} {
		put(t, dir, "hello-"+v+".mcpb", "@acme/hello", v)
	}
	put(t, dir, "notes.mcpb", "@acme/notes", "0.1.0")
	put(t, dir, "plain.mcpb", "plain", "1.0.0")
	for _, n := range []string{"a", "b", "c"} {
		put(t, dir, "more-"+n+".mcpb", "@more/"+n, "1.0.0")
	}
	return dir
}

func settings(dir string) string {
	raw, _ := json.Marshal(map[string]any{"dir": dir, "trustScore": 60})
	return string(raw)
}

func open(t *testing.T, dir string) *directory.Registry {
	t.Helper()
	r := directory.New()
	if err := r.Configure(t.Context(), plugins.Config{JSON: json.RawMessage(settings(dir))}); err != nil {
		t.Fatal(err)
	}
	return r
}

func sum(body []byte) string {
	s := sha256.Sum256(body)
	return hex.EncodeToString(s[:])
}
