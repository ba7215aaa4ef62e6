package testenv

import (
	"os/exec"
	"testing"
)

// Program returns the path of a program that test/install-deps installs. make test-fast, which runs go test -short, leaves
// out the tests that need one.
func Program(t testing.TB, name string) string {
	t.Helper()
	skipIfShort(t, name)
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is missing: test/install-deps installs it", name)
	}
	return path
}

// skipIfShort skips the test in short mode and logs what it needs.
func skipIfShort(t testing.TB, needs string) {
	t.Helper()
	if testing.Short() {
		t.Skipf("short mode: this test needs %s", needs)
	}
}
