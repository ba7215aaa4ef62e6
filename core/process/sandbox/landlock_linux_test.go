package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestAHiddenPathIsNotOpenedByItsDirectory(t *testing.T) {
	opt := t.TempDir()
	home := filepath.Join(opt, "vendor/ropewalk/home")
	program := filepath.Join(opt, "vendor/ropewalk/bin")
	config := filepath.Join(opt, "vendor/config.yaml")
	other := filepath.Join(opt, "other")
	bundle := filepath.Join(home, "apps/calc/bundle/1")
	for _, dir := range []string{bundle, program, other} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(home, filepath.Join(opt, "link")); err != nil {
		t.Fatal(err)
	}
	later := filepath.Join(opt, "later") // a file that the server may create later
	p := &Profile{Level: LevelLandlock, Read: []string{opt, bundle}, Hide: []string{home, config, later}}
	access := p.access()
	for _, path := range []string{program, other, bundle} {
		if access[path] != landlockRead {
			t.Errorf("%s is closed", path)
		}
	}
	for path := range access {
		if slices.ContainsFunc([]string{home, config, later}, func(hidden string) bool { return pathWithin(hidden, path) }) {
			t.Errorf("%s is open", path)
		}
	}
}
