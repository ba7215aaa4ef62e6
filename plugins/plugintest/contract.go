package plugintest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// contract returns the text of a kind's .proto file on one line, without comment markers.
func contract(t *testing.T, kind string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root(t), "proto", "ropewalk", kind, "v1", kind+".proto"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(strings.ReplaceAll(string(raw), "//", " ")), " ")
}

// root returns the root directory of the module.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil {
		if _, err = os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			break
		}
		dir, err = parent, nil
	}
	t.Fatalf("no go.mod above the directory of the test: %v", err)
	return ""
}
