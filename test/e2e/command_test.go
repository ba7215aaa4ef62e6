package e2e

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
)

// command runs ropewalk to its end and returns what it said, on both outputs, and its exit status.
func command(t *testing.T, environ []string, args ...string) (said string, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, environ...)
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	} else if ok {
		status = exit.ExitCode()
	}
	return string(out), status
}
