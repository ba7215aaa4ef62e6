package bundle

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
)

// input returns the input for a launch on Linux with node, python3 and uv in /opt/bin.
func input(_ testing.TB, values map[string]core.Secret) LaunchInput {
	return LaunchInput{
		Dir: "/bundles/hello", Home: "/data/hello", Data: "/data/hello", OS: "linux", Values: values,
		Base: map[string]string{"PATH": "/opt/bin", "HOME": "/data/hello"},
		Lookup: func(name string) (string, error) {
			if slices.Contains([]string{"node", "python3", "uv"}, name) {
				return "/opt/bin/" + name, nil
			}
			return "", ErrNoProgram
		},
	}
}

func server(kind string, config map[string]any) map[string]any {
	s := map[string]any{"type": kind, "entry_point": "src/main"}
	if config != nil {
		s["mcp_config"] = config
	}
	return with(minimal(), "server", s)
}

func TestLaunchCommand(t *testing.T) {
	for name, c := range map[string]struct {
		doc  map[string]any
		os   string
		want []string
	}{
		"node by its entry point":    {server("node", nil), "linux", []string{"/opt/bin/node", "/bundles/hello/src/main"}},
		"python by its entry point":  {server("python", nil), "linux", []string{"/opt/bin/python3", "/bundles/hello/src/main"}},
		"uv by its entry point":      {server("uv", nil), "linux", []string{"/opt/bin/uv", "run", "--directory", "/bundles/hello", "src/main"}},
		"python is found as python3": {server("python", map[string]any{"command": "python", "args": []any{"-m", "x"}}), "linux", []string{"/opt/bin/python3", "-m", "x"}},
		"every place": {server("node", map[string]any{"command": "node", "args": []any{"${__dirname}${/}a", "${HOME}", "${DESKTOP}", "${DOCUMENTS}", "${DOWNLOADS}", "a${pathSeparator}b"}}), "linux",
			[]string{"/opt/bin/node", "/bundles/hello/a", "/data/hello", "/data/hello/Desktop", "/data/hello/Documents", "/data/hello/Downloads", "a/b"}},
		"an override of this platform": {server("node", map[string]any{"command": "node", "args": []any{"a"}, "platform_overrides": map[string]any{"linux": map[string]any{"command": "uv", "args": []any{"b"}}}}), "linux",
			[]string{"/opt/bin/uv", "b"}},
		"an override of another platform": {server("node", map[string]any{"command": "node", "args": []any{"a"}, "platform_overrides": map[string]any{"win32": map[string]any{"args": []any{"b"}}}}), "linux",
			[]string{"/opt/bin/node", "a"}},
		"windows is win32": {server("node", map[string]any{"command": "node", "args": []any{"a"}, "platform_overrides": map[string]any{"win32": map[string]any{"args": []any{"b"}}}}), "windows",
			[]string{"/opt/bin/node", "b"}},
		"an override may remove all arguments": {server("node", map[string]any{"command": "node", "args": []any{"a"}, "platform_overrides": map[string]any{"linux": map[string]any{"args": []any{}}}}), "linux",
			[]string{"/opt/bin/node"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t, nil)
			in.OS = c.os
			l, err := parse(t, c.doc).Launch(in)
			if err != nil {
				t.Fatal(err)
			}
			if got := append([]string{l.Path}, l.Args...); !slices.Equal(got, c.want) {
				t.Fatalf("got %q, want %q", got, c.want)
			}
			if l.Dir != "/bundles/hello" {
				t.Fatalf("it starts in %s", l.Dir)
			}
		})
	}
}

func TestTheWorkingDirectoryIsTheBundlesUnlessTheManifestNamesAnother(t *testing.T) {
	for cwd, want := range map[string]string{"": "/bundles/hello", "${__dirname}/server": "/bundles/hello/server", "server": "/bundles/hello/server", "/srv/project": "/srv/project"} {
		l, err := parse(t, server("node", map[string]any{"command": "node", "args": []any{"a"}, "cwd": cwd})).Launch(input(t, nil))
		if err != nil || l.Dir != want {
			t.Errorf("%q: %s, %v", cwd, l.Dir, err)
		}
	}
}

func TestLaunchEnvironment(t *testing.T) {
	doc := with(server("python", map[string]any{"command": "python", "env": map[string]any{
		"PYTHONPATH": "${__dirname}/lib", "MODE": "prod", "TOKEN": "${user_config.token}", "URL": "http://x/${user_config.path}", "REGION": "${user_config.region}",
	}, "platform_overrides": map[string]any{"linux": map[string]any{"env": map[string]any{"EXTRA": "1", "MODE": "linux"}}}}),
		"user_config", map[string]any{"token": map[string]any{"type": "string"}, "path": map[string]any{"type": "string"},
			"region": map[string]any{"type": "string", "default": "${HOME}/eu"}})
	l, err := parse(t, doc).Launch(input(t, map[string]core.Secret{"DEBUG": "1"}))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"DEBUG=1", "EXTRA=1", "HOME=/data/hello", "MODE=linux", "PATH=/opt/bin", "PYTHONDONTWRITEBYTECODE=1",
		"PYTHONPATH=/bundles/hello/lib", "REGION=/data/hello/eu", "URL=http://x/"}
	if !slices.Equal(l.Env, want) {
		t.Fatalf("got  %q\nwant %q", l.Env, want)
	}
	l, err = parse(t, doc).Launch(input(t, map[string]core.Secret{"token": "s3cret", "MODE": "test"}))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(l.Env, "TOKEN=s3cret") || !slices.Contains(l.Env, "MODE=test") || slices.Contains(l.Env, "token=s3cret") {
		t.Fatalf("a value given by its key must only fill the field, and a variable of the caller must win: %q", l.Env)
	}
}

func TestUVKeepsItsEnvironmentOutsideTheBundle(t *testing.T) {
	l, err := parse(t, server("uv", nil)).Launch(input(t, nil))
	if err != nil || !slices.Contains(l.Env, "UV_PROJECT_ENVIRONMENT=/data/hello/venv") {
		t.Fatalf("got %q, %v", l.Env, err)
	}
}

func TestFieldsWithSeveralValuesBecomeArguments(t *testing.T) {
	doc := with(with(minimal(), "server.mcp_config.args", []any{"--dirs", "${user_config.dirs}", "in ${user_config.dirs}", "${user_config.one}"}),
		"user_config", map[string]any{"dirs": map[string]any{"type": "directory", "multiple": true}, "one": map[string]any{"type": "string"}})
	for name, c := range map[string]struct {
		values map[string]core.Secret
		want   []string
	}{
		"two of them":               {map[string]core.Secret{"dirs": `["/a b","/c"]`}, []string{"--dirs", "/a b", "/c", "in /a b,/c", ""}},
		"none of them":              {map[string]core.Secret{"dirs": `[]`}, []string{"--dirs", "in ", ""}},
		"one that is not a list":    {map[string]core.Secret{"dirs": "/a b"}, []string{"--dirs", "/a b", "in /a b", ""}},
		"a list for a single value": {map[string]core.Secret{"one": `["a"]`}, []string{"--dirs", "in ", `["a"]`}},
		"a list of objects":         {map[string]core.Secret{"dirs": `[{"a":1}]`}, []string{"--dirs", `[{"a":1}]`, `in [{"a":1}]`, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := parse(t, doc).Launch(input(t, c.values))
			if err != nil || !slices.Equal(l.Args, c.want) {
				t.Fatalf("got %q, %v, want %q", l.Args, err, c.want)
			}
		})
	}
	with(doc, "user_config.dirs.default", []any{"${DOCUMENTS}", "/x"})
	if l, err := parse(t, doc).Launch(input(t, nil)); err != nil || !slices.Equal(l.Args[:3], []string{"--dirs", "/data/hello/Documents", "/x"}) {
		t.Fatalf("defaults: got %q, %v", l.Args, err)
	}
}

func TestAVariableSetByTheManifestIsNotReplaced(t *testing.T) {
	doc := with(with(minimal(), "server.mcp_config.env", map[string]any{"DIRS": "${user_config.dirs}", "MODE": "${user_config.mode}"}),
		"user_config", map[string]any{"dirs": map[string]any{"type": "directory", "multiple": true}, "mode": map[string]any{"type": "string"}})
	l, err := parse(t, doc).Launch(input(t, map[string]core.Secret{"DIRS": `["/a","/b"]`, "mode": "exact", "MODE": "variable"}))
	if err != nil || !slices.Contains(l.Env, "DIRS=/a,/b") || !slices.Contains(l.Env, "MODE=variable") {
		t.Fatalf("got %q, %v", l.Env, err)
	}
}

func TestRefusedLaunches(t *testing.T) {
	for name, c := range map[string]struct {
		doc  map[string]any
		want string
	}{
		"on a platform that is not listed": {with(minimal(), "compatibility.platforms", []any{"darwin", "win32"}), "supports only darwin, win32, but this server runs linux"},
		"without its runtime":              {server("node", map[string]any{"command": "bun"}), `"bun" is not on the server's search path`},
		"with a field nobody declared":     {server("node", map[string]any{"command": "node", "args": []any{"x", "${user_config.k}"}}), "server.mcp_config.args[1] refers to ${user_config.k}"},
		"with such a field in its env":     {server("node", map[string]any{"command": "node", "env": map[string]any{"K": "${user_config.k}"}}), "server.mcp_config.env.K refers to ${user_config.k}"},
		"without its program":              {server("binary", nil), "server.mcp_config.command: program not found: /bundles/hello/src/main"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parse(t, c.doc).Launch(input(t, nil)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestBinaryMustBeExecutable(t *testing.T) {
	in := input(t, nil)
	in.Dir = t.TempDir()
	program := filepath.Join(in.Dir, "src", "main")
	if err := errors.Join(os.Mkdir(filepath.Dir(program), 0o700), os.WriteFile(program, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	m := parse(t, server("binary", map[string]any{"command": "src/main"}))
	if _, err := m.Launch(in); err == nil || !strings.Contains(err.Error(), "is not an executable file") {
		t.Fatalf("got %v", err)
	}
	if err := os.Chmod(program, 0o700); err != nil {
		t.Fatal(err)
	}
	if l, err := m.Launch(in); err != nil || l.Path != program {
		t.Fatalf("got %v, %v", l, err)
	}
}

func TestLookup(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	for path, mode := range map[string]os.FileMode{filepath.Join(a, "tool"): 0o600, filepath.Join(b, "tool"): 0o700} {
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(b, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	find := Lookup(strings.Join([]string{"", ".", "relative", a, b}, string(os.PathListSeparator)))
	if path, err := find("tool"); err != nil || path != filepath.Join(b, "tool") {
		t.Fatalf("got %s, %v: files that are not executable are skipped", path, err)
	}
	for _, name := range []string{"folder", "lookup_test.go", "none"} {
		if path, err := find(name); !errors.Is(err, ErrNoProgram) {
			t.Errorf("%s: got %s, %v", name, path, err)
		}
	}
}

func TestCheckRuntime(t *testing.T) {
	m := parse(t, with(minimal(), "compatibility.runtimes", map[string]any{"node": ">=18.0.0", "python": ">=3.99"}))
	for version, ok := range map[string]bool{"v22.4.0\n": true, "v16.20.0": false, "18.0.0": true, "who knows": true, "": true} {
		if err := m.CheckRuntime(version); ok != (err == nil) {
			t.Errorf("%q: got %v", version, err)
		}
	}
}

func TestLaunchPrintsNoSecret(t *testing.T) {
	l := Launch{Path: "/bin/x", Args: []string{"canary"}, Env: []string{"K=canary"}}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(verb, l); strings.Contains(text, "canary") {
			t.Errorf("%s prints %s", verb, text)
		}
	}
}
