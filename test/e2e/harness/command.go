package harness

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Command runs ropewalk until it exits. It returns the output (both standard output and standard error) and the exit
// code.
func Command(t *testing.T, environ []string, args ...string) (output string, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, Binary(t), args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GORACE=" + os.Getenv("GORACE")}, environ...)
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	} else if ok {
		status = exit.ExitCode()
	}
	return string(out), status
}

// Reload writes the configuration and runs ropewalk reload.
func (s *Server) Reload(t *testing.T, yaml string) (output string, err error) {
	t.Helper()
	WriteFile(t, filepath.Join(s.Home, "ropewalk.yaml"), yaml)
	out, err := exec.CommandContext(t.Context(), Binary(t), "reload", "--home", s.Home).CombinedOutput()
	return string(out), err
}

// MustReload is like Reload. The test fails if the command fails or its output does not name the sections.
func (s *Server) MustReload(t *testing.T, yaml string, sections ...string) {
	t.Helper()
	output, err := s.Reload(t, yaml)
	if err != nil {
		t.Fatalf("reload: %v: %s", err, output)
	}
	for _, section := range sections {
		if !strings.Contains(output, section) {
			t.Errorf("reload printed %q, without the section %s", output, section)
		}
	}
}
