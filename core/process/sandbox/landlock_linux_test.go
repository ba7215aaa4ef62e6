package sandbox

import (
	"errors"
	"io/fs"
	"maps"
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
	log := filepath.Join(opt, "vendor/audit.log")
	rotated := log + ".000001" // before the app's start
	for _, file := range []string{config, log, rotated} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(home, filepath.Join(opt, "link")); err != nil {
		t.Fatal(err)
	}
	later := filepath.Join(opt, "later") // a file that the server may create later
	hidden := []string{home, config, later, log}
	for _, level := range []Level{LevelLandlock, LevelNamespaces} {
		p := &Profile{Level: level, Read: []string{opt, bundle}, Hide: hidden}
		access := p.access()
		for _, path := range []string{program, other, bundle} {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(access)), func(open string) bool { return PathWithin(path, open) }) {
				t.Errorf("%v: %s is closed", level, path)
			}
		}
		for path := range access {
			if slices.ContainsFunc(append(hidden, rotated), func(hidden string) bool { return PathWithin(hidden, path) }) {
				t.Errorf("%v: %s is open", level, path)
			}
		}
	}
}

func TestContentThatNotEveryoneMayReadIsPrivate(t *testing.T) {
	dir := t.TempDir()
	var want []string
	for path, mode := range map[string]fs.FileMode{
		"ssl/cert.pem": 0o644, "ssl/private/key.pem": 0o644, "ssl/key.pem": 0o640, "passwd": 0o644, "secret": 0o600,
	} {
		at := filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, nil, mode)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Chmod(filepath.Join(dir, "ssl/private"), 0o710), os.Symlink("key.pem", filepath.Join(dir, "ssl/link"))); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"secret", "ssl/key.pem", "ssl/private"} {
		want = append(want, filepath.Join(dir, path))
	}
	if got := privateIn([]string{filepath.Join(dir, "passwd"), filepath.Join(dir, "secret"), filepath.Join(dir, "ssl"), filepath.Join(dir, "none")}); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
