package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// PassesItsKit runs the conformance kit against a built-in adapter that ships as its own executable, the way
// any author does: with ropewalk plugin test. Every check must pass except a known number of skipped ones: two
// apply only to exclusive plugins. settings is the JSON for --config.
func PassesItsKit(t testing.TB, skipped int, adapter, settings string, flags ...string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "settings.json")
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	plugin := Executable(t, adapter)
	args := append([]string{"plugin", "test", plugin, "--config", file, "--effort", "quick", "--start-timeout", "3m"}, flags...)
	test := exec.CommandContext(t.Context(), Executable(t, "ropewalk"), args...)
	test.Env = append(os.Environ(), "ROPEWALK_HOME="+t.TempDir())
	output, err := test.CombinedOutput()
	if err != nil || !strings.Contains(string(output), fmt.Sprintf(" passed, 0 failed, %d not judged", skipped)) {
		t.Errorf("ropewalk plugin test %s: %v\n%s", adapter, err, output)
	}
}
