package sandbox_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// put writes an executable file and returns its path.
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

func TestABundleOpensNoDirectoryThroughItsProgramOrTheFilesNextToIt(t *testing.T) {
	secret, bundle, home := t.TempDir(), t.TempDir(), t.TempDir()
	put(t, secret, "id_rsa", "secret")
	tool := put(t, secret, "bin/tool", "#!/bin/sh")
	put(t, bundle, "server/pyvenv.cfg", "home = "+secret+"\n")
	other := put(t, home, "apps/other/bundle/1/venv/bin/python", "")
	put(t, home, "apps/other/bundle/1/venv/pyvenv.cfg", "home = "+secret+"\n")
	for name, program := range map[string]string{
		"a file that says where Python is": put(t, bundle, "server/bin/run", ""),
		"a program of the machine":         tool,
		"a program of another app":         other,
	} {
		for _, path := range sandbox.ForeignRuntimePaths(program, []string{"/usr/bin"}, []string{home, "/home/somebody"}) {
			if path != tool && (strings.HasPrefix(path, secret) || strings.HasPrefix(path, home)) {
				t.Errorf("%s opens %s", name, path)
			}
		}
	}
}

func TestOnlyTheProgramsOwnFileNextToTheHomeIsOpened(t *testing.T) {
	dir := t.TempDir()
	home := filepath.Join(dir, "home")
	program := put(t, dir, "ropewalk", "")
	if err := os.Chmod(put(t, dir, "secret", "secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if found := sandbox.RuntimePaths(program, []string{dir, "/usr/bin"}, []string{home}); !slices.Equal(found, []string{program}) {
		t.Errorf("it opens %v", found)
	}
	inside := put(t, home, "tool", "")
	if found := sandbox.RuntimePaths(inside, []string{home}, []string{home}); len(found) != 0 {
		t.Errorf("a program in the home opens %v", found)
	}
}

func TestThePythonOfAVirtualEnvironmentIsOpened(t *testing.T) {
	python, bundle := t.TempDir(), t.TempDir()
	interpreter := put(t, python, "bin/python3.12", "")
	put(t, python, "lib/python3.12/os.py", "")
	if err := os.Symlink("python3.12", filepath.Join(python, "bin/python3")); err != nil {
		t.Fatal(err)
	}
	put(t, bundle, "venv/pyvenv.cfg", "home = "+python+"/bin\n")
	program := put(t, bundle, "venv/bin/server", "")
	found := sandbox.ForeignRuntimePaths(program, nil, []string{"/nowhere"})
	for _, want := range []string{interpreter, filepath.Join(python, "lib")} {
		if !slices.Contains(found, want) {
			t.Errorf("%s is not opened: %v", want, found)
		}
	}
}

// The test lays out runtimes as their managers do, with files next to them that must remain closed.
func TestRuntimesOpenOnlyTheirInterpreterLibrariesAndPackages(t *testing.T) {
	user := t.TempDir()
	canaries := []string{
		".npmrc", ".netrc", ".env", ".cargo/credentials.toml", ".cargo/config.toml", ".nvm/.npmrc", ".nvm/versions/node/v22/.npmrc", ".nvm/versions/node/v22/etc/npmrc",
		".nvm/versions/node/v22/bin/.env", "proj/.env", "proj/bin/.env", "proj/bin/notes", "proj/src/key", "proj/lib/key", "proj/config.json", ".local/share/keyrings/login",
		".local/share/mise/config", ".config/mise/config.toml", ".pyenv/.netrc", ".pyenv/.git/config", ".deno/.env", ".bun/.env", "go/.netrc", "go/src/key", ".local/bin/.env",
		"tools/.env", "tools/secret.txt", ".local/pipx/venvs/black/.env", ".local/share/uv/credentials/credentials.toml", "sdk/go1.25/.netrc", ".local/share/fnm/.env",
		"venv/.env", "venv/.netrc",
	}
	for _, name := range canaries {
		if err := os.Chmod(put(t, user, name, "canary"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	link := func(target, at string) {
		t.Helper()
		path := filepath.Join(user, at)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{
		".nvm/versions/node/v22/bin/node", ".nvm/versions/node/v22/lib/node_modules/npm/bin/npx-cli.js", ".cargo/bin/tool", "proj/bin/run", ".deno/bin/deno", ".bun/bin/bun",
		"go/bin/gopls", ".pyenv/shims/python", ".pyenv/libexec/pyenv", ".pyenv/versions/3.12/bin/python3.12", ".pyenv/versions/3.12/lib/python3.12/os.py", ".local/bin/mise",
		".local/share/mise/installs/node/22/bin/node", ".local/share/mise/installs/node/22/lib/node_modules/npm/index.js", ".local/share/fnm/node-versions/v22/installation/bin/node",
		".local/share/fnm/node-versions/v22/installation/lib/node_modules/npm/index.js", ".local/share/uv/python/cpython-3.12/bin/python3.12",
		".local/share/uv/python/cpython-3.12/lib/python3.12/os.py", "tools/server", "sdk/go1.25/bin/go", "sdk/go1.25/pkg/tool/compile", "sdk/go1.25/src/fmt/print.go",
	} {
		put(t, user, name, "")
	}
	put(t, user, ".local/pipx/venvs/black/bin/black", "#!"+user+"/.local/pipx/venvs/black/bin/python\n")
	put(t, user, ".local/pipx/venvs/black/pyvenv.cfg", "home = "+user+"/.local/share/uv/python/cpython-3.12/bin\n")
	put(t, user, ".local/pipx/venvs/black/lib/python3.12/site-packages/black.py", "")
	link(user+"/.local/share/uv/python/cpython-3.12/bin/python3.12", ".local/pipx/venvs/black/bin/python")
	link("../pipx/venvs/black/bin/black", ".local/bin/black")
	link("../lib/node_modules/npm/bin/npx-cli.js", ".nvm/versions/node/v22/bin/npx")
	link("../../../bin/mise", ".local/share/mise/shims/node")
	link(user+"/.local/share/fnm/node-versions/v22/installation", "run/fnm_multishells/1")

	for _, c := range []struct {
		program string
		needs   []string
	}{
		{".nvm/versions/node/v22/bin/npx", []string{".nvm/versions/node/v22/lib/node_modules/npm/bin/npx-cli.js", ".nvm/versions/node/v22/bin/node"}},
		{"run/fnm_multishells/1/bin/node", []string{".local/share/fnm/node-versions/v22/installation/bin/node", ".local/share/fnm/node-versions/v22/installation/lib/node_modules/npm/index.js"}},
		{".local/share/mise/installs/node/22/bin/node", []string{".local/share/mise/installs/node/22/lib/node_modules/npm/index.js"}},
		{".local/share/mise/shims/node", []string{".local/bin/mise", ".local/share/mise/installs/node/22/bin/node"}},
		{".pyenv/shims/python", []string{".pyenv/libexec/pyenv", ".pyenv/versions/3.12/bin/python3.12", ".pyenv/versions/3.12/lib/python3.12/os.py"}},
		{".pyenv/versions/3.12/bin/python3.12", []string{".pyenv/versions/3.12/lib/python3.12/os.py"}},
		{".local/share/uv/python/cpython-3.12/bin/python3.12", []string{".local/share/uv/python/cpython-3.12/lib/python3.12/os.py"}},
		{".local/bin/black", []string{
			".local/pipx/venvs/black/bin/black", ".local/pipx/venvs/black/pyvenv.cfg", ".local/pipx/venvs/black/lib/python3.12/site-packages/black.py",
			".local/share/uv/python/cpython-3.12/bin/python3.12", ".local/share/uv/python/cpython-3.12/lib/python3.12/os.py",
		}},
		{".cargo/bin/tool", nil}, {"proj/bin/run", nil}, {".deno/bin/deno", nil}, {".bun/bin/bun", nil}, {"go/bin/gopls", nil}, {"tools/server", nil},
		{"sdk/go1.25/bin/go", []string{"sdk/go1.25/pkg/tool/compile", "sdk/go1.25/src/fmt/print.go"}},
	} {
		program := filepath.Join(user, c.program)
		search, protected := []string{filepath.Dir(program), "/usr/bin"}, []string{"/nowhere", user}
		found := append(sandbox.RuntimePaths(program, search, protected), sandbox.SearchPathPrograms(search, protected)...)
		isOpen := func(name string) bool {
			at := filepath.Join(user, name)
			return slices.ContainsFunc(found, func(f string) bool { return at == f || strings.HasPrefix(at, f+"/") })
		}
		for _, need := range append(c.needs, c.program) {
			if !isOpen(need) {
				t.Errorf("%s cannot read %s: %v", c.program, need, found)
			}
		}
		for _, canary := range canaries {
			if isOpen(canary) {
				t.Errorf("%s opens %s", c.program, canary)
			}
		}
	}
}
