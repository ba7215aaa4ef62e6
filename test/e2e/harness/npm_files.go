package harness

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
)

// copyPackage copies an npm package and its dependencies into a bundle directory.
func copyPackage(t *testing.T, dir, pkg string) {
	t.Helper()
	npm := testenv.Node(t)
	for _, from := range dependencies(t, npm, pkg) {
		within, _ := filepath.Rel(npm, from)
		to := filepath.Join(dir, within)
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.CopyFS(to, ownFiles{os.DirFS(from)})); err != nil {
			t.Fatal(err)
		}
	}
}

// dependencies returns the directories of a package and all its dependencies. It resolves them as Node does.
func dependencies(t *testing.T, root, pkg string) []string {
	t.Helper()
	var found []string
	seen := map[string]bool{}
	var visit func(from, name string, optional bool)
	visit = func(from, name string, optional bool) {
		for dir := from; strings.HasPrefix(dir, root); dir = filepath.Dir(dir) {
			at := filepath.Join(dir, "node_modules", name)
			raw, err := os.ReadFile(filepath.Join(at, "package.json"))
			if err != nil {
				continue
			}
			if seen[at] {
				return
			}
			seen[at] = true
			found = append(found, at)
			var needs struct{ Dependencies, PeerDependencies map[string]string }
			if err := json.Unmarshal(raw, &needs); err != nil {
				t.Fatal(err)
			}
			for need := range needs.Dependencies {
				visit(at, need, false)
			}
			for need := range needs.PeerDependencies {
				visit(at, need, true)
			}
			return
		}
		if !optional {
			t.Fatalf("%s needs %s, which is not installed", from, name)
		}
	}
	visit(root, pkg, false)
	return found
}

// unneeded matches files that no program reads. They make up half of most packages.
var unneeded = regexp.MustCompile(`\.(map|d\.[cm]?ts|md)$`)

// ownFiles is a package's file system without node_modules and unneeded files.
type ownFiles struct{ fs.FS }

func (w ownFiles) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(w.FS, name)
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		return e.Name() == "node_modules" || unneeded.MatchString(e.Name())
	}), err
}
