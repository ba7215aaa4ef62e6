package testenv

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Python returns the directory of a virtual environment with the packages that the requirements.txt in a
// directory of the repository lists, with hashes. Its programs are in bin. The first test that needs it
// installs it; others, including those in other processes, wait.
func Python(t testing.TB, folder string) string {
	t.Helper()
	skipIfShort(t, "Python packages")
	requirements := filepath.Join(Root(t), folder, "requirements.txt")
	lock, err := os.ReadFile(requirements)
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256(lock)
	dir := filepath.Join(Root(t), ".cache", "python-"+hex.EncodeToString(digest[:6]))
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	defer Lock(t, dir+".lock")()
	complete := filepath.Join(dir, ".complete")
	if _, err := os.Stat(complete); err == nil {
		return dir
	}
	for _, args := range [][]string{
		{"venv", "--quiet", "--clear", dir},
		{"pip", "install", "--quiet", "--require-hashes", "--python", filepath.Join(dir, "bin", "python"), "-r", requirements},
	} {
		uv := exec.CommandContext(t.Context(), "uv", args...)
		uv.Env = append(os.Environ(), "UV_HTTP_RETRIES=10")
		if out, err := uv.CombinedOutput(); err != nil {
			t.Fatalf("uv %v: %v\n%s", args, err, out)
		}
	}
	if err := os.WriteFile(complete, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}
