package testenv

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Root returns the repository's directory.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test's directory")
		}
	}
}

// Documented returns the nth code block (from 0) in a language on a page in docs.
func Documented(t testing.TB, page, language string, nth int) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Root(t), "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "```"+language+"\n")
	if len(blocks) < nth+2 {
		t.Fatalf("docs/%s has %d %s blocks, but the test needs block %d", page, len(blocks)-1, language, nth+1)
	}
	block, _, _ := strings.Cut(blocks[nth+1], "```")
	return block
}

// Node returns a directory whose node_modules contains the packages in test/npm/package-lock.json.
func Node(t testing.TB) string {
	t.Helper()
	return Packages(t, filepath.Join("test", "npm"))
}

// Packages returns a directory whose node_modules contains the packages in the package-lock.json of a directory
// in the repository. The first test that needs it installs it; others, including those in other processes,
// wait.
func Packages(t testing.TB, folder string) string {
	t.Helper()
	skipIfShort(t, "npm packages")
	from := filepath.Join(Root(t), folder)
	lock, err := os.ReadFile(filepath.Join(from, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256(lock)
	dir := filepath.Join(Root(t), ".cache", "npm-"+hex.EncodeToString(digest[:6]))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	defer Lock(t, dir+".lock")()
	complete := filepath.Join(dir, ".complete")
	if _, err := os.Stat(complete); err == nil {
		return dir
	}
	for _, name := range []string{"package.json", "package-lock.json"} {
		if err := copyFile(filepath.Join(from, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	npm := exec.CommandContext(t.Context(), "npm", "ci", "--no-audit", "--no-fund", "--fetch-retries", "5")
	npm.Dir = dir
	if out, err := npm.CombinedOutput(); err != nil {
		t.Fatalf("npm ci in %s: %v\n%s", dir, err, out)
	}
	if err := os.WriteFile(complete, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Lock takes the lock on the file at path, which all processes share, and returns a function that releases it.
func Lock(t testing.TB, path string) func() {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	for {
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		t.Fatalf("lock %s: %v", path, err)
	}
	return func() { _ = f.Close() }
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o644)
}
