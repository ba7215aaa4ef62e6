package files_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/files"
	"github.com/ropewalk/ropewalk/core/apps/source"
)

const program = "console.log('harmless')\n"

// sealed returns an installed app with a few sealed files.
func sealed(t *testing.T) (*files.Store, core.Installation) {
	t.Helper()
	home := t.TempDir()
	r := core.Installation{Workspace: core.DefaultWorkspaceID, Name: "notes", Dir: filepath.Join(home, "apps", "notes", "bundle", "0123456789abcdef")}
	write(t, filepath.Join(r.Dir, "server", "main.js"), program)
	write(t, filepath.Join(r.Dir, "manifest.json"), "{}")
	write(t, filepath.Join(r.Dir, "node_modules", "dep", "index.js"), "exports.ok = 1\n")
	if err := os.Symlink("main.js", filepath.Join(r.Dir, "server", "link.js")); err != nil {
		t.Fatal(err)
	}
	s := files.New(files.Options{Home: home})
	var err error
	if r.Sum, err = s.Seal(t.Context(), r); err != nil || len(r.Sum) != 64 {
		t.Fatalf("sealed as %q: %v", r.Sum, err)
	}
	if err := s.Verify(t.Context(), r, false); err != nil {
		t.Fatalf("unchanged files: %v", err)
	}
	return s, r
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func TestEveryFlippedByteOfAnInstalledFileIsFound(t *testing.T) {
	s, r := sealed(t)
	path := filepath.Join(r.Dir, "server", "main.js")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range len(program) {
		flipped := []byte(program)
		flipped[i] ^= 1
		write(t, path, string(flipped))
		if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil { // as an attacker would
			t.Fatal(err)
		}
		if err := s.Verify(t.Context(), r, true); !errors.Is(err, files.ErrChanged) || !strings.Contains(err.Error(), "(server/main.js)") {
			t.Fatalf("byte %d: %v", i, err)
		}
	}
}

// This is the situation after the state has been restored: the files are back, but their list of hashes is missing.
func TestAMissingListOfHashesIsRebuiltFromUnchangedFilesOnly(t *testing.T) {
	s, r := sealed(t)
	list, main := source.SumsFile(r.Dir), filepath.Join(r.Dir, "server", "main.js")
	if err := os.Remove(list); err != nil {
		t.Fatal(err)
	}
	write(t, main, "tampered\n")
	if err := s.Verify(t.Context(), r, true); !errors.Is(err, files.ErrChanged) || files.Exists(list) {
		t.Fatalf("changed files without a list: %v, and the list exists: %t", err, files.Exists(list))
	}
	for _, wrong := range []string{"", "0000  other.js\n"} {
		write(t, main, program)
		if wrong != "" {
			write(t, list, wrong)
		}
		if err := s.Verify(t.Context(), r, true); err != nil {
			t.Fatal(err)
		}
		write(t, main, "tampered\n")
		if err := s.Verify(t.Context(), r, true); !errors.Is(err, files.ErrChanged) || !strings.Contains(err.Error(), "(server/main.js)") {
			t.Errorf("after the list %q: %v", wrong, err)
		}
	}
}

func TestEveryChangeToInstalledFilesIsNamed(t *testing.T) {
	in := func(r core.Installation, name string) string { return filepath.Join(r.Dir, filepath.FromSlash(name)) }
	cases := map[string]struct {
		change func(t *testing.T, r core.Installation) error
		named  string
		mayAdd bool // an app without a sandbox may do this
	}{
		"a file is removed": {func(_ *testing.T, r core.Installation) error { return os.Remove(in(r, "manifest.json")) }, "manifest.json", false},
		"a file is added": {func(t *testing.T, r core.Installation) error {
			write(t, in(r, "node_modules/dep/index.mjs"), "")
			return nil
		}, "node_modules/dep/index.mjs", true},
		"a file becomes a program": {func(_ *testing.T, r core.Installation) error { return os.Chmod(in(r, "server/main.js"), 0o700) }, "server/main.js", false},
		"a file becomes a link": {func(t *testing.T, r core.Installation) error {
			elsewhere := filepath.Join(t.TempDir(), "main.js")
			write(t, elsewhere, program)
			return errors.Join(os.Remove(in(r, "server/main.js")), os.Symlink(elsewhere, in(r, "server/main.js")))
		}, "server/main.js", false},
		"a link points elsewhere": {func(_ *testing.T, r core.Installation) error {
			return errors.Join(os.Remove(in(r, "server/link.js")), os.Symlink("../manifest.json", in(r, "server/link.js")))
		}, "server/link.js", false},
		"the list of hashes changes with the file": {func(t *testing.T, r core.Installation) error {
			write(t, in(r, "server/main.js"), "evil")
			_, err := files.New(files.Options{Home: filepath.Join(r.Dir, "..", "..", "..", "..")}).Seal(context.Background(), r)
			return err
		}, "list of their hashes was changed", false},
		"the list of hashes is removed and a file added": {func(t *testing.T, r core.Installation) error {
			write(t, in(r, "new.js"), "")
			return os.Remove(r.Dir + ".sums")
		}, "list of their hashes cannot be read", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s, r := sealed(t)
			if err := c.change(t, r); err != nil {
				t.Fatal(err)
			}
			if err := s.Verify(t.Context(), r, false); !errors.Is(err, files.ErrChanged) || !strings.Contains(err.Error(), c.named) {
				t.Errorf("the error is %v", err)
			}
			if err := s.Verify(t.Context(), r, true); (err == nil) != c.mayAdd {
				t.Errorf("without a sandbox the error is %v", err)
			}
		})
	}
}

func TestUnchangedFilesDoNotNeedAHashList(t *testing.T) {
	s, r := sealed(t)
	if err := os.Remove(r.Dir + ".sums"); err != nil {
		t.Fatal(err)
	}
	if err := s.Verify(t.Context(), r, false); err != nil {
		t.Error(err)
	}
}

func TestFilesThatTheServerDidNotPutInPlaceAreNotChecked(t *testing.T) {
	home := t.TempDir()
	s, r := files.New(files.Options{Home: home}), core.Installation{Workspace: core.DefaultWorkspaceID, Name: "notes", Dir: t.TempDir()}
	if sum, err := s.Seal(t.Context(), r); err != nil || sum != "" {
		t.Errorf("sealed as %q: %v", sum, err)
	}
}

// BenchmarkVerify measures what the check adds to a start, for a small bundle and for an npm package with its
// dependencies.
func BenchmarkVerify(b *testing.B) {
	for _, size := range []struct{ files, bytes int }{{10, 10 << 10}, {1000, 10 << 10}, {3000, 10 << 10}} {
		b.Run(fmt.Sprintf("%d files of %d KiB", size.files, size.bytes>>10), func(b *testing.B) {
			home, content := b.TempDir(), []byte(strings.Repeat("x", size.bytes))
			r := core.Installation{Workspace: core.DefaultWorkspaceID, Name: "notes", Dir: filepath.Join(home, "apps", "notes", "bundle", "0123456789abcdef")}
			for i := range size.files {
				path := filepath.Join(r.Dir, fmt.Sprint(i%50), fmt.Sprint(i))
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o600)); err != nil {
					b.Fatal(err)
				}
			}
			s := files.New(files.Options{Home: home})
			var err error
			if r.Sum, err = s.Seal(b.Context(), r); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if err := s.Verify(b.Context(), r, false); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
