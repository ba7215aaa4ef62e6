package core_test

import (
	"os"
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
