package server

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestFilesNamedInPluginSettingsAreFound(t *testing.T) {
	dir := t.TempDir()
	tokens, key := filepath.Join(dir, "tokens.yaml"), filepath.Join(dir, "key.pem")
	for _, file := range []string{tokens, key} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found := filesIn(map[string]any{
		"file": tokens, "tls": map[string]any{"files": []any{key, "relative.pem"}}, "caFile": "/etc/passwd", "dir": dir, "prefix": "/none", "timeout": 3.0, "url": "https://example.com/" + key,
	})
	slices.Sort(found)
	if want := []string{key, tokens}; !slices.Equal(found, want) {
		t.Errorf("%q, want %q", found, want)
	}
}
