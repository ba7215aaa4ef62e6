package apps

import (
	"archive/zip"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/internal/testenv"
)

// packageManager returns a Manager with fake versions of npm, node and uv, each in its own directory (see installer).
func packageManager(t *testing.T, change func(*Options), programs ...string) *Manager {
	t.Helper()
	y, _ := realManager(t, t.TempDir(), newMemoryRecords(), func(o *Options) {
		o.HostEnv["PATH"] = strings.Join(append(programs, o.HostEnv["PATH"]), ":")
		if change != nil {
			change(o)
		}
	})
	return y
}

// npmOf returns an npm that installs notes 1.0.0 and then runs a script in the package's directory.
func npmOf(t *testing.T, script string) string {
	t.Helper()
	return installer(t, "npm", `if [ "$1" = view ]; then echo '"1.0.0"'; exit; fi
mkdir -p "$3/node_modules/.bin" "$3/node_modules/notes"; cd "$3/node_modules/notes"
echo '{"name":"notes","bin":"main.js"}' > package.json
`+script)
}

// nodeOf returns a node that runs the test bundle.
func nodeOf(t *testing.T) string {
	t.Helper()
	return installer(t, "node", `exec "`+selfPath(t)+`" `+bundleArg+` `+modeNormal)
}

// called returns the arguments that a program was called with.
func called(t *testing.T, program string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(program, "said"))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// uvOf returns a uv whose environments contain the command notes. Its pip fails with a message until an environment has
// been created with --python.
func uvOf(t *testing.T, message string) string {
	t.Helper()
	return installer(t, "uv", `here=$(dirname "$0")
if [ "$1" = venv ]; then
  [ "$3" = --python ] && : > "$here/fits" && shift 2
  mkdir -p "$3/bin"; exit
fi
if [ ! -e "$here/fits" ]; then echo '`+message+`' >&2; exit 1; fi
printf '#!/bin/sh\nexec "`+selfPath(t)+`" `+bundleArg+` `+modeNormal+`\n' > "$(dirname "$7")/notes"; chmod +x "$(dirname "$7")/notes"`)
}

func TestAPackagesCommandsComeFirstOnItsPATH(t *testing.T) {
	fits := uvOf(t, "")
	if err := os.WriteFile(filepath.Join(fits, "fits"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, r := range map[string]source.Request{
		"node_modules/.bin": {NPM: "notes@1.0.0"},
		"venv/bin":          {PyPI: "notes@1.0.0"},
	} {
		y := packageManager(t, nil, nodeOf(t), npmOf(t, ""), fits)
		install(t, y, r)
		a, err := y.find(ws, "notes")
		if err != nil {
			t.Fatal(err)
		}
		path, _ := look(t, y, "notes").env("PATH")
		first, rest, _ := strings.Cut(path, ":")
		expect(t, "the first directory on PATH", first, filepath.Join(a.now.Load().record.Dir, want))
		expect(t, "the others", rest, y.o.HostEnv["PATH"])
	}
}

// If an app runs during its update, it could replace what an installer unpacks in one of the app's directories.
func TestAnInstallerUsesNoneOfTheAppsDirectories(t *testing.T) {
	seen := filepath.Join(t.TempDir(), "seen")
	y := packageManager(t, nil, nodeOf(t), npmOf(t, `printf '%s' "$TMPDIR" > "`+seen+`"`))
	install(t, y, source.Request{NPM: "notes@1.0.0"})
	tmp, err := os.ReadFile(seen)
	if err != nil {
		t.Fatal(err)
	}
	layout := source.LayoutOf(y.o.Home, ws)
	if filepath.Dir(string(tmp)) != layout.IncomingDir() {
		t.Errorf("TMPDIR is %s", tmp)
	}
	if _, err := os.Stat(string(tmp)); !os.IsNotExist(err) {
		t.Errorf("it was not removed: %v", err)
	}
}

func TestAPyPIProjectGetsThePythonThatItRequires(t *testing.T) {
	for needed, message := range map[string]string{
		">=3.13":       "Because the current Python version (3.11.2) does not satisfy Python>=3.13 and notes==1.0.0 depends on Python>=3.13, we can conclude that notes==1.0.0 cannot be used.",
		">=3.13,<3.15": "cause: Because notes==1.0.0 requires Python >=3.13, <3.15 and you require notes==1.0.0, we can conclude that your requirements are unsatisfiable.",
	} {
		uv := uvOf(t, message)
		y := packageManager(t, nil, uv)
		app := install(t, y, source.Request{PyPI: "notes@1.0.0"})
		expect(t, "status", app.Status, core.StateRunning)
		if !strings.Contains(called(t, uv), "venv --quiet --python "+needed+" ") {
			t.Errorf("uv was called with %q, without --python %s", called(t, uv), needed)
		}
	}
}

// wheelFor creates a wheel of notes 1.0.0 and returns the directory that contains it.
func wheelFor(t *testing.T, requiresPython string) string { return wheelWith(t, requiresPython, nil) }

// wheelWith is like wheelFor, with these files in the wheel.
func wheelWith(t *testing.T, requiresPython string, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "notes-1.0.0-py3-none-any.whl"))
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	packed := map[string]string{
		"notes-1.0.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: notes\nVersion: 1.0.0\nRequires-Python: " + requiresPython + "\n",
		"notes-1.0.0.dist-info/WHEEL":    "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		"notes-1.0.0.dist-info/RECORD":   "",
	}
	maps.Copy(packed, files)
	for name, text := range packed {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// This test uses the real uv and pip, offline.
func TestAMissingVersionOfPythonIsNamed(t *testing.T) {
	uv := testenv.Program(t, "uv")
	alone := pythonAlone(t)
	wheels := wheelFor(t, ">=3.99,<4")
	for _, c := range []struct{ name, path, project, says string }{
		{"uv", filepath.Dir(uv) + ":/usr/bin:/bin", "notes@1.0.0", "the PyPI project needs Python >=3.99,<4, which uv neither found nor fetched"},
		{"pip", alone + ":/usr/bin:/bin", "notes@1.0.0", "the PyPI project needs Python <4,>=3.99, but python3 is a different version: install uv"},
		{"pip for the newest version", alone + ":/usr/bin:/bin", "notes", "the PyPI project needs Python <4,>=3.99, but python3 is a different version: install uv"},
	} {
		t.Run(c.name, func(t *testing.T) {
			y := packageManager(t, func(o *Options) {
				o.HostEnv = map[string]string{
					"PATH": c.path, "UV_OFFLINE": "1", "UV_NO_INDEX": "1", "UV_FIND_LINKS": wheels, "UV_CACHE_DIR": t.TempDir(),
					"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": wheels,
				}
			})
			_, err := y.Install(t.Context(), ws, source.Request{PyPI: c.project})
			expect(t, "code", core.CodeOf(err), core.CodeInstallFailed)
			if !strings.Contains(core.TextOf(err), c.says) {
				t.Errorf("the message does not say %q: %v", c.says, err)
			}
		})
	}
}

func TestAPackageThatDoesNotStartSaysWhichNodeItNeeds(t *testing.T) {
	for needs, says := range map[string]string{
		`{"node":">=22.5.0"}`: "notes 1.0.0 needs node >=22.5.0, but this machine has 20.1.0", `{"node":">=18"}`: "", `["node >= 22"]`: "", `{"node":"any"}`: "",
	} {
		npm := npmOf(t, `echo '{"name":"notes","bin":"main.js","engines":`+needs+`}' > package.json`)
		node := installer(t, "node", `if [ "$1" = --version ]; then echo v20.1.0; exit; fi
echo 'No such built-in module: node:sqlite' >&2; exit 1`)
		_, err := packageManager(t, nil, npm, node).Install(t.Context(), ws, source.Request{NPM: "notes"})
		expect(t, "code", core.CodeOf(err), core.CodeInstallFailed)
		text := core.TextOf(err)
		if !strings.Contains(text, "node:sqlite") || !strings.Contains(text, says) || strings.Contains(text, " needs ") != (says != "") {
			t.Errorf("%s: %v", needs, err)
		}
	}
}

func TestANativePackageThatNeedsItsInstallScriptSaysSo(t *testing.T) {
	npm := npmOf(t, `echo '{"name":"notes","bin":"main.js","scripts":{"test":"x"}}' > package.json
mkdir -p node_modules/@db/native; echo '{"name":"@db/native","scripts":{"install":"node-gyp rebuild"}}' > node_modules/@db/native/package.json
mkdir -p ../gyp; echo '{"name":"gyp"}' > ../gyp/package.json; : > ../gyp/binding.gyp`)
	node := installer(t, "node", "echo \"Error: Cannot find module 'build/Release/db.node'\" >&2; exit 1")
	y := packageManager(t, nil, npm, node)
	_, err := y.Install(t.Context(), ws, source.Request{NPM: "notes"})
	expect(t, "code", core.CodeOf(err), core.CodeInstallFailed)
	for _, want := range []string{"build/Release/db.node", "the install scripts of @db/native, gyp were not run", "an organization admin can allow them with apps.notes.installScripts: true"} {
		if !strings.Contains(core.TextOf(err), want) {
			t.Errorf("the message does not say %q: %v", want, err)
		}
	}
}

func TestInstallScriptsRunOnlyIfTheConfigurationAllowsThem(t *testing.T) {
	var asks source.Request
	if err := json.Unmarshal([]byte(`{"npm":"notes@1.0.0","installScripts":true}`), &asks); err != nil {
		t.Fatal(err)
	}
	allowed := declare(map[string]config.App{"notes": {InstallScripts: true}})
	for _, c := range []struct {
		name, workspace string
		change          func(*Options)
		want            string
	}{
		{"a request that sets it", ws, nil, " --ignore-scripts "},
		{"the configuration", ws, allowed, " --ignore-scripts=false "},
		{"the configuration of another app", ws, declare(map[string]config.App{"other": {InstallScripts: true}}), " --ignore-scripts "},
		{"the configuration, in a workspace without declared apps", "ws_b", allowed, " --ignore-scripts "},
	} {
		t.Run(c.name, func(t *testing.T) {
			npm := npmOf(t, "")
			y := packageManager(t, c.change, npm, nodeOf(t))
			if _, err := y.Install(t.Context(), c.workspace, asks); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(called(t, npm), c.want) {
				t.Errorf("npm was called with %q, without%s", called(t, npm), c.want)
			}
		})
	}
}

func TestDetailsAndUninstallReturnTheActualDataPath(t *testing.T) {
	home := t.TempDir()
	y, _ := realManager(t, home, newMemoryRecords(), nil)
	for workspace, want := range map[string]string{
		ws:     filepath.Join(home, "apps", "notes"),
		"ws_b": filepath.Join(home, "workspaces", "ws_b", "apps", "notes"),
	} {
		if _, err := y.Install(t.Context(), workspace, source.Request{Path: bundleDir(t, "@test/notes", modeNormal, nil)}); err != nil {
			t.Fatal(err)
		}
		kept := filepath.Join(want, "data", "kept")
		if err := os.WriteFile(kept, []byte("x"), 0o600); err != nil {
			t.Errorf("the data of the app is missing: %v", err)
		}
		d, err := y.Details(workspace, "notes")
		if err != nil {
			t.Fatal(err)
		}
		expect(t, "the path in the details", d.DataPath, want)
		path, err := y.Uninstall(t.Context(), workspace, "notes")
		if err != nil {
			t.Fatal(err)
		}
		expect(t, "the path returned by Uninstall", path, want)
		if _, err := os.Stat(kept); err != nil {
			t.Errorf("the data is gone: %v", err)
		}
	}
}

func TestAScriptIsNotABundle(t *testing.T) {
	script := filepath.Join(t.TempDir(), "hello.py")
	if err := os.WriteFile(script, []byte("print('hello, this is a script and not an archive')\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := packageManager(t, nil).Install(t.Context(), ws, source.Request{Path: script})
	if want := script + " is not a bundle; install the command that runs it: python3 " + script; !strings.Contains(core.TextOf(err), want) {
		t.Errorf("the message does not say %q: %v", want, err)
	}
}
