package operations

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// makeWith runs make with a shell script in place of the go command. It returns the output.
func makeWith(t *testing.T, script string, args ...string) (output string, err error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "go")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700); err != nil { //nolint:gosec // it is executed
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "make", append([]string{"-C", testenv.Root(t), "--no-print-directory", "GO=" + path}, args...)...)
	cmd.Env = append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL=0")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// oldGo behaves like a go command that is older than the version in go.mod. It downloads the toolchain if online is
// set.
const oldGo = `case "$*" in
"env GOVERSION") echo go1.26.0 ;;
version) [ "$GOPROXY" != off ] && [ -n "$online" ] || { echo 'go: download go1.26.11: dial tcp: no such host' >&2; exit 1; } ;;
*) echo "built with GOTOOLCHAIN=$GOTOOLCHAIN" ;;
esac
`

func TestMakeHelpAndCleanRunNoGoCommand(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"help", "clean"} {
		if output, err := makeWith(t, "echo 'the go command runs' >&2", "--dry-run", target); err != nil || strings.Contains(output, "the go command runs") {
			t.Errorf("make %s: %v\n%s", target, err, output)
		}
	}
}

func TestTheDownloadOfAToolchainIsAnnounced(t *testing.T) {
	t.Parallel()
	output, err := makeWith(t, "online=1\n"+oldGo, "build")
	announced, built, _ := strings.Cut(output, "\n")
	if err != nil || !strings.HasPrefix(announced, "downloading go1.") || !strings.Contains(announced, "go1.26.0") || built != "built with GOTOOLCHAIN=auto\n" {
		t.Errorf("make build: %v\n%s", err, output)
	}
	if output, err := makeWith(t, oldGo, "build"); err == nil || strings.Contains(output, "built with") {
		t.Errorf("with a Go version that go.mod does not allow, make build returned %v:\n%s", err, output)
	}
	if output, err := makeWith(t, strings.Replace(oldGo, "go1.26.0", "go1.26.9", 1), "build"); err != nil || !strings.HasSuffix(output, "built with GOTOOLCHAIN=local\n") {
		t.Errorf("with a newer Go version and no network, make build returned %v:\n%s", err, output)
	}
}

func TestMakeDistWithoutANetworkFailsWithOneSentence(t *testing.T) {
	t.Parallel()
	dist := filepath.Join(testenv.Root(t), "dist")
	before, _ := os.Stat(dist)
	output, err := makeWith(t, "[ \"$*\" = 'env GOVERSION' ] && echo go1.99.0 || { echo 'go: downloading x' >&2; echo 'go: download go1.26.11: dial tcp: no such host' >&2; exit 1; }", "dist")
	sentence, rest, _ := strings.Cut(output, "\n")
	if err == nil || !strings.Contains(sentence, "network") || !strings.Contains(sentence, "no such host") || strings.Count(rest, "\n") > 1 {
		t.Errorf("make dist: %v\n%s", err, output)
	}
	after, err := os.Stat(dist)
	if before == nil && !errors.Is(err, fs.ErrNotExist) || before != nil && !os.SameFile(before, after) {
		t.Error("make dist created or changed dist/")
	}
	if _, err := os.Stat(filepath.Join(testenv.Root(t), ".cache", "dist")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("make dist left a partial build: %v", err)
	}
}

func TestAUserWithoutRootGetsOneListOfMissingPackages(t *testing.T) {
	t.Parallel()
	path := t.TempDir() // a machine that has only a shell, with a user other than root
	for _, name := range []string{"bash", "dirname", "grep"} {
		program, err := exec.LookPath(name)
		if err == nil {
			err = os.Symlink(program, filepath.Join(path, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, script := range map[string]string{"id": "echo 1000", "apt-get": "echo apt-get runs", "sudo": "exit 1"} {
		harness.WriteFile(t, filepath.Join(path, name), "#!/bin/sh\n"+script+"\n")
		if err := os.Chmod(filepath.Join(path, name), 0o700); err != nil { //nolint:gosec // it is executed
			t.Fatal(err)
		}
	}
	copied := filepath.Join(t.TempDir(), "test", "install-deps") // run a copy, so that the script finds no tools in a .cache next to it
	script, err := os.ReadFile(filepath.Join(testenv.Root(t), "test", "install-deps"))
	if err != nil {
		t.Fatal(err)
	}
	harness.WriteFile(t, copied, string(script))
	cmd := exec.CommandContext(t.Context(), "bash", copied)
	cmd.Env = []string{"PATH=" + path}
	out, err := cmd.CombinedOutput()
	output := string(out)
	if err == nil || strings.Count(output, "\n") != 1 || strings.Contains(output, "apt-get runs") {
		t.Errorf("%v\n%s", err, output)
	}
	for _, name := range []string{"gcc", "libc6-dev", "git", "curl", "redis-server", "docker-registry", "chromium", "prometheus", "rpm", "systemd", "util-linux", "python3-venv", "python3-pip"} {
		if !strings.Contains(output, " "+name) {
			t.Errorf("%s is not in the list: %s", name, output)
		}
	}
}

func TestTheReleaseScriptPrintsTheCommandsOrWhyThereAreNone(t *testing.T) {
	t.Parallel()
	checkout := filepath.Join(t.TempDir(), "ropewalk")
	git := func(args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	release := func(version string) (output string, err error) {
		out, err := exec.CommandContext(t.Context(), filepath.Join(checkout, "deploy", "release"), version).CombinedOutput()
		return string(out), err
	}
	refused := func(version, reason string) {
		t.Helper()
		if output, err := release(version); err == nil || strings.Count(output, "\n") != 1 || !strings.Contains(output, reason) {
			t.Errorf("release %s: %v\n%s", version, err, output)
		}
	}
	git("clone", "--quiet", "--depth=1", "file://"+testenv.Root(t), checkout)
	if output, err := release("v0.1.0"); err != nil || !strings.Contains(output, "git tag -s v0.1.0") {
		t.Errorf("releasing the last commit: %v\n%s", err, output)
	}
	refused("0.1.0", "VERSION")
	git("-C", checkout, "tag", "v0.2.0")
	refused("v0.2.0", "v0.2.0 exists")
	harness.WriteFile(t, filepath.Join(checkout, "new"), "")
	refused("v0.1.0", "not committed")
}
