package testenv

import (
	"os/exec"
	"testing"
)

// Chromium returns the executable of the browser that pages are opened in.
func Chromium(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("chromium is missing: test/install-deps installs it")
	}
	return path
}
