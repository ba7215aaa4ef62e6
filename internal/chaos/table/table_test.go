package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestEveryCheckNamesAnExistingRowAndExistingTests(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	rows, err := readRows(filepath.Join(root, "docs", "security.md"))
	if err != nil || len(rows) < 50 {
		t.Fatalf("%d rows: %v", len(rows), err)
	}
	for _, c := range checks() {
		found := false
		for _, r := range rows {
			found = found || r.number == c.row || r.number == "" && strings.HasPrefix(r.threat, c.row)
		}
		if !found {
			t.Errorf("docs/security.md has no row %q", c.row)
		}
		if strings.HasPrefix(c.tests, "Fuzz") && strings.Contains(c.tests, "|") {
			t.Errorf("%s: a check should name only one fuzz target", c.tests)
		}
		if c.dir == "" {
			if !isTarget(t, filepath.Join(root, "Makefile"), c.tests) {
				t.Errorf("the Makefile has no target %s", c.tests)
			}
			continue
		}
		for name := range strings.SplitSeq(c.tests, "|") {
			if !hasTest(t, filepath.Join(root, c.dir), name) {
				t.Errorf("%s has no test %s", c.dir, name)
			}
		}
	}
}

func TestEveryRowIsMeasured(t *testing.T) {
	rows, err := readRows(filepath.Join("..", "..", "..", "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	results := map[string][]result{}
	for _, c := range checks() {
		results[c.row] = append(results[c.row], result{})
	}
	for _, r := range rows {
		if len(resultsOf(r, results)) == 0 {
			t.Errorf("row %s %q has no check", r.number, r.threat)
		}
	}
}

func isTarget(t *testing.T, makefile, name string) bool {
	t.Helper()
	raw, err := os.ReadFile(makefile)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`(?m)^` + name + `:`).Match(raw)
}

func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`(?m)^func ` + name + `\(`)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if declared.Match(raw) {
			return true
		}
	}
	return false
}
