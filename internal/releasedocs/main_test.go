package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestEveryLinkOfAnArchiveLeadsToAFileOfItOrToTheRepository(t *testing.T) {
	archive := t.TempDir()
	r := release{version: "0.9.1-rc1", commit: "0123abc", date: "2026-01-31"}
	if err := r.copyTo("../..", archive); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(archive, "LICENSE"), nil, 0o600); err != nil { // deploy/dist copies it
		t.Fatal(err)
	}
	files, err := documents(archive)
	if err != nil || len(files) < 10 {
		t.Fatalf("%v, %v", files, err)
	}
	elsewhere := regexp.MustCompile(`^(https?|mailto):`)
	absolute := 0
	for _, file := range files {
		text := read(t, filepath.Join(archive, file))
		for _, m := range target.FindAllStringSubmatch(text, -1) {
			to, _, _ := strings.Cut(m[3], "#")
			switch {
			case elsewhere.MatchString(to):
				if strings.HasPrefix(to, repository+"/") && strings.Contains(to, "/v0.9.1-rc1/") {
					absolute++
				}
			case to != "":
				if _, err := os.Stat(filepath.Join(archive, filepath.Dir(file), to)); err != nil {
					t.Errorf("%s links to %s: %v", file, to, err)
				}
			}
		}
	}
	if absolute < 3 { // of the README alone: ARCHITECTURE.md, CONTRIBUTING.md, examples
		t.Errorf("%d links lead to the repository", absolute)
	}
	changes := read(t, filepath.Join(archive, changelog))
	if !strings.Contains(changes, "\n## 0.9.1-rc1 - 2026-01-31\n") || strings.Contains(changes, "Unreleased") {
		t.Errorf("the changelog begins with %.300s", changes)
	}
}

func TestTheTargetsOfLinks(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"docs/a.md", "docs/console/one.png", "proto/x.proto", "ARCHITECTURE.md"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	archived := []string{"README.md", "docs/a.md"}
	for text, want := range map[string]string{
		"[a](a.md#part) [b](#here)":                  "[a](a.md#part) [b](#here)",
		"[r](../README.md)":                          "[r](../README.md)",
		"[s](../ARCHITECTURE.md#x)":                  "[s](" + repository + "/blob/v1.2.3/ARCHITECTURE.md#x)",
		"![one](console/one.png)":                    "![one](" + repository + "/raw/v1.2.3/docs/console/one.png)",
		"[p](../proto) [q](../proto/x.proto)":        "[p](" + repository + "/tree/v1.2.3/proto) [q](" + repository + "/blob/v1.2.3/proto/x.proto)",
		"[e](https://example.com/x)":                 "[e](https://example.com/x)",
		"```\n[p](../proto)\n```\n[s](../README.md)": "```\n[p](../proto)\n```\n[s](../README.md)",
	} {
		if got, err := (release{version: "1.2.3"}).link(root, "docs/a.md", text, archived); got != want || err != nil {
			t.Errorf("%s becomes %s, %v; want %s", text, got, err, want)
		}
	}
	if _, err := (release{version: "1.2.3"}).link(root, "docs/a.md", "[g](gone.md)", archived); err == nil || !strings.Contains(err.Error(), "docs/a.md links to gone.md") {
		t.Errorf("a broken link gives %v", err)
	}
}

func TestTheRefAndTheHeadingOfABuildBetweenReleases(t *testing.T) {
	const text = "# Changelog\n\n## Unreleased\n\n## 1.0.0\n"
	for version, want := range map[string][2]string{
		"1.2.3":                  {"v1.2.3", "# Changelog\n\n## 1.2.3 - 2026-01-31\n\n## 1.0.0\n"},
		"1.0.0":                  {"v1.0.0", text},
		"1.2.3-4-g0123abc":       {"0123abc", "# Changelog\n\n## 1.2.3-4-g0123abc - 2026-01-31\n\n## 1.0.0\n"},
		"1.2.3-4-g0123abc-dirty": {"0123abc", "# Changelog\n\n## 1.2.3-4-g0123abc-dirty - 2026-01-31\n\n## 1.0.0\n"},
		"1.2.3-dirty":            {"0123abc", "# Changelog\n\n## 1.2.3-dirty - 2026-01-31\n\n## 1.0.0\n"},
		"81d5881":                {"0123abc", text},
		"0.0.0-reproducible":     {"v0.0.0-reproducible", "# Changelog\n\n## 0.0.0-reproducible - 2026-01-31\n\n## 1.0.0\n"},
	} {
		r := release{version: version, commit: "0123abc", date: "2026-01-31"}
		if got := r.ref(); got != want[0] {
			t.Errorf("%s: the ref is %s, want %s", version, got, want[0])
		}
		if got := r.headed(text); got != want[1] {
			t.Errorf("%s: the changelog is %q, want %q", version, got, want[1])
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
