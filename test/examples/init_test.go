package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// shell runs commands in a directory, with ropewalk on the PATH, and returns their output.
func shell(t *testing.T, dir, commands string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", commands)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+filepath.Dir(harness.Binary(t))+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// withPackages makes a skeleton's build use the packages of the Python example, which include all packages that the
// skeleton needs.
func withPackages(t *testing.T, commands string) string {
	t.Helper()
	venv := filepath.Join(filepath.Dir(authPython(t)), ".venv")
	return strings.ReplaceAll(commands, "./build\n", "ln -s '"+venv+"' .venv\n./build\n")
}

// TestThePluginsInTheDocumentPassTheirKit tests the session store skeletons.
func TestPluginInitWritesAPluginInPythonThatPassesItsKit(t *testing.T) {
	for _, kind := range []string{"auth", "registry", "audit"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			passes(t, withPackages(t, "ropewalk plugin init "+kind+" demo --lang python\ncd demo\n./build\nropewalk plugin test ./demo --effort quick --start-timeout 3m\n"))
		})
	}
}

func TestPluginInitWritesAPluginInJavaThatPassesItsKit(t *testing.T) {
	if os.Getenv("ROPEWALK_TEST_JAVA") == "" {
		t.Skip("the kits start each plugin in Java forty times: make test-java tries those that make test does not")
	}
	needJava(t)
	for _, kind := range []string{"auth", "registry", "audit"} {
		t.Run(kind, func(t *testing.T) {
			passes(t, "ropewalk plugin init "+kind+" demo --lang java\ncd demo\nmvn -B -q package\nropewalk plugin test ./demo --effort quick --start-timeout 3m\n")
		})
	}
}

func passes(t *testing.T, commands string) {
	t.Helper()
	out, err := shell(t, t.TempDir(), commands)
	if err != nil || !strings.Contains(out, " 0 failed, 0 not judged, ") {
		t.Errorf("%s: %v\n%s", commands, err, out)
	}
}

func TestAPythonSkeletonHasTheExamplesPackages(t *testing.T) {
	t.Parallel()
	example, err := os.ReadFile("../../examples/auth-python/requirements.txt")
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile("../../cmd/ropewalk/skeleton/files/python/requirements.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(own)) {
		if !strings.Contains("\n"+string(example), "\n"+line) {
			t.Errorf("%q is not in the requirements of examples/auth-python", strings.TrimSpace(line))
		}
	}
}
