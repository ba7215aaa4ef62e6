package sandbox_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core/sandbox"
)

// put writes an executable file, and returns its path.
func put(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestABundleOpensNoDirectoryByItsProgramOrWhatLiesBesideIt(t *testing.T) {
	secret, bundle, home := t.TempDir(), t.TempDir(), t.TempDir()
	put(t, secret, "id_rsa", "secret")
	tool := put(t, secret, "bin/tool", "#!/bin/sh")
	put(t, bundle, "server/pyvenv.cfg", "home = "+secret+"\n")
	other := put(t, home, "apps/other/bundle/1/venv/bin/python", "")
	put(t, home, "apps/other/bundle/1/venv/pyvenv.cfg", "home = "+secret+"\n")
	for name, program := range map[string]string{
		"a file that says where a Python lies": put(t, bundle, "server/bin/run", ""),
		"a program of the machine":             tool,
		"a program of another app":             other,
	} {
		for _, path := range sandbox.ForeignRuntimePaths(program, []string{"/usr/bin"}, []string{home, "/home/somebody"}) {
			if path != tool && (strings.HasPrefix(path, secret) || strings.HasPrefix(path, home)) {
				t.Errorf("%s opens %s", name, path)
			}
		}
	}
}

func TestOfAProgramBesideTheHomeOnlyItsFileIsOpened(t *testing.T) {
	dir := t.TempDir()
	home := filepath.Join(dir, "home")
	program := put(t, dir, "ropewalk", "")
	put(t, dir, "secret", "secret")
	if found := sandbox.RuntimePaths(program, []string{dir, "/usr/bin"}, []string{home}); !slices.Equal(found, []string{program}) {
		t.Errorf("it opens %v", found)
	}
	inside := put(t, home, "tool", "")
	if found := sandbox.RuntimePaths(inside, []string{home}, []string{home}); len(found) != 0 {
		t.Errorf("a program in the home opens %v", found)
	}
}

func TestThePythonThatAVirtualEnvironmentWasMadeFromIsOpened(t *testing.T) {
	python, bundle := t.TempDir(), t.TempDir()
	interpreter := put(t, python, "bin/python3.12", "")
	put(t, python, "lib/python3.12/os.py", "")
	if err := os.Symlink("python3.12", filepath.Join(python, "bin/python3")); err != nil {
		t.Fatal(err)
	}
	put(t, bundle, "venv/pyvenv.cfg", "home = "+python+"/bin\n")
	program := put(t, bundle, "venv/bin/server", "")
	found := sandbox.ForeignRuntimePaths(program, nil, []string{"/nowhere"})
	for _, want := range []string{interpreter, filepath.Join(python, "bin"), filepath.Join(python, "lib")} {
		if !slices.Contains(found, want) {
			t.Errorf("%s is not opened: %v", want, found)
		}
	}
}
