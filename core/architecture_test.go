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
	_, below, _ := strings.Cut(string(architecture), "\ncore/ ")
	for _, p := range listPackages(t) {
		_, path, inCore := strings.Cut(p.ImportPath, "/ropewalk/core/")
		if !inCore {
			continue
		}
		parent, rest, nested := strings.Cut(path, "/")
		_, section, listed := strings.Cut(below, "\n  "+parent+"/ ")
		if !listed {
			t.Errorf("ARCHITECTURE.md has no line for core/%s", parent)
		}
		if nested && !strings.Contains(rest, "/") && !strings.Contains(indented(section), " "+rest+"/") {
			t.Errorf("ARCHITECTURE.md does not list core/%s under core/%s", path, parent)
		}
	}
}

// indented returns the lines after the first that are indented deeper than a package of core.
func indented(section string) string {
	var b strings.Builder
	for _, line := range strings.SplitAfter(section, "\n")[1:] {
		if !strings.HasPrefix(line, "    ") {
			break
		}
		b.WriteString(line)
	}
	return b.String()
}
