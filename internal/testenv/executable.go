package testenv

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Ropewalk is the server's executable for a package's tests: the one that ROPEWALK_BINARY specifies, or else
// one that the first test builds. Tests keep it in a package variable, because even a go build with nothing
// to do takes a second of processor time. The zero value is ready to use.
type Ropewalk struct {
	Race bool // build it with the race detector

	once sync.Once
	path string
}

// Path returns the path of the executable.
func (r *Ropewalk) Path(t testing.TB) string {
	t.Helper()
	r.once.Do(func() {
		if r.path = os.Getenv("ROPEWALK_BINARY"); r.path != "" {
			return
		}
		if r.Race {
			r.path = Executable(t, "ropewalk", "-race")
		} else {
			r.path = Executable(t, "ropewalk")
		}
	})
	if r.path == "" {
		t.Fatal("ropewalk was not built: see the first test that failed")
	}
	return r.path
}

// Executable builds a command with additional go build flags, and returns its path. The command is the name of
// a directory in cmd, or the import path of a program in a required module. All packages share the executable; it is
// rebuilt only if its sources have changed.
func Executable(t testing.TB, command string, flags ...string) string {
	t.Helper()
	return filepath.Join(executables(t, []string{command}, flags), filepath.Base(command))
}

// Executables builds commands like Executable, and returns the directory that contains them.
func Executables(t testing.TB, commands ...string) (dir string) {
	t.Helper()
	return executables(t, commands, nil)
}

func executables(t testing.TB, commands, flags []string) (dir string) {
	t.Helper()
	dir = filepath.Join(Root(t), ".cache", "bin"+strings.Join(flags, ""))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	args := slices.Clone(flags)
	for _, command := range commands {
		if !strings.Contains(command, "/") {
			command = "./cmd/" + command
		}
		args = append(args, command)
	}
	defer Lock(t, dir+".lock")()
	if slices.Contains(commands, "ropewalk") {
		args = append([]string{"-tags=shim"}, args...)
		if err := buildShim(t.Context(), Root(t)); err != nil {
			t.Fatal(err)
		}
	}
	if err := Build(t.Context(), Root(t), dir+"/", args...); err != nil {
		t.Fatal(err)
	}
	return dir
}

// buildShim builds the shim, which the server embeds when built with the tag shim.
func buildShim(ctx context.Context, root string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(root, "deploy", "shim"))
	cmd.Env = append(os.Environ(), GoEnviron()...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("deploy/shim: %w\n%s", err, out)
	}
	return nil
}

// GoEnviron returns the environment in which the go tool compiles as make build does, with additional go flags.
// Anything that a test compiles in it reuses the packages compiled for the server and the tests. In any other
// environment, the standard library and every dependency would be compiled again.
func GoEnviron(flags ...string) []string {
	all := append(strings.Fields(os.Getenv("GOFLAGS")), append(flags, "-trimpath")...)
	return []string{"CGO_ENABLED=0", "GOFLAGS=" + strings.Join(all, " ")}
}

// Build runs go build in a directory. Without -race it compiles like make build, so that tests and releases
// share compiled packages; with -race, like make test (see RACE in the Makefile).
func Build(ctx context.Context, dir, output string, args ...string) error {
	environ := os.Environ()
	flags := []string{"build", "-buildvcs=false", "-ldflags=-s -w", "-o", output}
	if slices.Contains(args, "-race") {
		flags = append(flags, "-gcflags=modernc.org/sqlite/lib=-race=false", "-gcflags=modernc.org/libc=-race=false")
	} else {
		environ = append(environ, GoEnviron()...)
	}
	cmd := exec.CommandContext(ctx, "go", append(flags, args...)...)
	cmd.Dir, cmd.Env = dir, environ
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(cmd.Args[1:], " "), err, out)
	}
	return nil
}
