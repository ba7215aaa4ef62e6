package cleanup_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/core/apps/cleanup"
)

// dig creates nested directories, with a file in each, deeper than the maximum length of a path.
func dig(t *testing.T, dir string, depth int) {
	t.Helper()
	at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range depth {
		file, err := unix.Openat(at, "file", unix.O_CREAT|unix.O_WRONLY, 0o600)
		if err := errors.Join(err, unix.Close(file), unix.Mkdirat(at, "deeper", 0o700)); err != nil {
			t.Fatal(err)
		}
		inner, err := unix.Openat(at, "deeper", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err := errors.Join(err, unix.Close(at)); err != nil {
			t.Fatal(err)
		}
		at = inner
	}
	if err := unix.Close(at); err != nil {
		t.Fatal(err)
	}
}

func removed(t *testing.T, dir string) {
	t.Helper()
	if err := cleanup.RemoveAll(dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s was not removed: %v", dir, err)
	}
}

func TestADirectoryDeeperThanThereAreDescriptorsIsRemoved(t *testing.T) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &limit) })
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 256, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "deep")
	for _, name := range []string{".moved-1", "a", "b"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	dig(t, filepath.Join(dir, "a"), 3000)
	dig(t, filepath.Join(dir, "b"), 100)
	removed(t, dir)
}

func TestADirectoryThatItsOwnerMayNotReadIsRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "closed")
	inner := filepath.Join(dir, "inner")
	if err := errors.Join(os.MkdirAll(filepath.Join(inner, "most"), 0o700), os.WriteFile(filepath.Join(inner, "file"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(filepath.Join(inner, "most"), 0), os.Chmod(inner, 0o400), os.Chmod(dir, 0)); err != nil {
		t.Fatal(err)
	}
	removed(t, dir)
}

func TestALinkIsRemovedButNotItsTarget(t *testing.T) {
	outside, dir := t.TempDir(), filepath.Join(t.TempDir(), "links")
	kept := filepath.Join(outside, "kept")
	if err := errors.Join(os.WriteFile(kept, nil, 0o600), os.Mkdir(dir, 0o700), os.Symlink(outside, filepath.Join(dir, "link")), os.Symlink(dir, filepath.Join(dir, "circle"))); err != nil {
		t.Fatal(err)
	}
	removed(t, dir)
	if err := os.Symlink(outside, dir); err != nil {
		t.Fatal(err)
	}
	removed(t, dir)
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
	removed(t, filepath.Join(outside, "nothing"))
	removed(t, kept)
}
