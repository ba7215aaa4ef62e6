package main

import (
	"bytes"
	"encoding/json"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

func TestTheBillNamesTheModulesOfAnExecutableAndIsTheSameTwice(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	for _, w := range []*bytes.Buffer{&first, &second} {
		if err := run(exe, "1.2.3", w); err != nil {
			t.Fatal(err)
		}
	}
	if first.String() != second.String() {
		t.Error("two bills of one executable differ")
	}
	var b bom
	if err := json.Unmarshal(first.Bytes(), &b); err != nil {
		t.Fatal(err)
	}
	if b.Format != "CycloneDX" || b.Metadata.Component.Purl != "pkg:golang/github.com/ropewalk/ropewalk@1.2.3" || len(b.Dependencies[0].DependsOn) != len(b.Components) {
		t.Errorf("%+v", b.Metadata)
	}
	if !slices.ContainsFunc(b.Components, func(c component) bool { return c.Name == "std" && c.Version != "" }) {
		t.Error("the standard library is not in the bill")
	}
	if err := run("/bin/sh", "1", &first); err == nil || !strings.Contains(err.Error(), "/bin/sh") {
		t.Errorf("an executable that is not of Go: %v", err)
	}
}

func TestAReplacedModuleIsNamedByWhatReplacesIt(t *testing.T) {
	b := describe(&debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Path: "example.com/x"}, Deps: []*debug.Module{
		{Path: "example.com/b", Version: "v1.0.0", Sum: "h1:b"},
		{Path: "example.com/a", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v1.0.1", Sum: "h1:f"}},
	}}, "1")
	var refs []string
	for _, c := range b.Components {
		refs = append(refs, c.Ref)
	}
	if want := []string{"pkg:golang/example.com/b@v1.0.0", "pkg:golang/example.com/fork@v1.0.1", "pkg:golang/std@1.26.0"}; !slices.Equal(refs, want) {
		t.Errorf("%q", refs)
	}
}
