package core_test

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestTheArchitectureListsEveryPackageOfCore(t *testing.T) {
	architecture, err := os.ReadFile("../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	packages, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range packages {
		if pkg.IsDir() && !strings.Contains(string(architecture), "\n  "+pkg.Name()+"/ ") {
			t.Errorf("ARCHITECTURE.md has no line for core/%s", pkg.Name())
		}
	}
}

// A package of more files than that has more than one subject: find the seam.
const maxFiles = 25

func TestNoPackageHasMoreThan25Files(t *testing.T) {
	for _, p := range listPackages(t) {
		files := slices.DeleteFunc(slices.Concat(p.GoFiles, p.IgnoredGoFiles), func(name string) bool { return strings.HasSuffix(name, "_test.go") })
		if len(files) > maxFiles {
			t.Errorf("%s has %d files, at most %d are allowed: move a part of it that stands alone into a package of its own", p.ImportPath, len(files), maxFiles)
		}
	}
}
