package instance

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestANewProgramOnTheSearchPathIsFoundImmediately(t *testing.T) {
	dir := t.TempDir()
	install := func(name string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var programs searchPathPrograms
	install("one")
	found := programs.list([]string{dir}, nil)
	if !slices.Contains(found, filepath.Join(dir, "one")) {
		t.Fatalf("%q", found)
	}
	if again := programs.list([]string{dir}, nil); &again[0] != &found[0] {
		t.Error("it searched again")
	}
	install("two")
	if found := programs.list([]string{dir}, nil); !slices.Contains(found, filepath.Join(dir, "two")) {
		t.Errorf("%q", found)
	}
}
