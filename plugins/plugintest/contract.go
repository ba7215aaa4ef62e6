package plugintest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// contract is the text of a .proto file with its comments on one line.
func contract(t *testing.T, kind string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root(t), "proto", "ropewalk", kind, "v1", kind+".proto"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(strings.ReplaceAll(string(raw), "//", " ")), " ")
}

// root is the directory of the module that the test is in.
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
