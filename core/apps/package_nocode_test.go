package apps

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/internal/testenv"
)

// npmRegistry serves version 1.0.0 of the package "notes", which depends on other packages.
func npmRegistry(t *testing.T, dependencies map[string]string) string {
	t.Helper()
	return npmPackage(t, map[string]any{"dependencies": dependencies}, map[string]string{"main.js": ""})
}

// npmPackage serves version 1.0.0 of the package "notes" with these manifest fields and files.
func npmPackage(t *testing.T, manifest map[string]any, files map[string]string) string {
	t.Helper()
	manifest["name"], manifest["version"], manifest["bin"] = "notes", "1.0.0", "main.js"
	raw, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	packed := map[string]string{"package/package.json": string(raw)}
	for name, text := range files {
		packed["package/"+name] = text
	}
	tarball := archive(t, packed)
	sum := sha512.Sum512(tarball)
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".tgz") {
			_, _ = w.Write(tarball)
			return
		}
		listed := maps.Clone(manifest)
		listed["dist"] = map[string]any{"tarball": server.URL + "/notes.tgz", "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:])}
		_ = json.NewEncoder(w).Encode(map[string]any{"name": "notes", "dist-tags": map[string]any{"latest": "1.0.0"}, "versions": map[string]any{"1.0.0": listed}})
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// archive returns a compressed tar archive.
func archive(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	w := tar.NewWriter(packed)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// repository creates a git repository with files, which may be executable, and returns its URL.
func repository(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	writeAll(t, dir, files)
	for _, args := range [][]string{{"init", "--quiet"}, {"add", "."}, {"-c", "user.name=test", "-c", "user.email=test@example.org", "commit", "--quiet", "-m", "all"}} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return "git+file://" + dir
}

func writeAll(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

// This test uses the real npm. A package in a git repository can choose the program that npm runs as git to fetch its
// dependencies.
func TestAGitDependencyOfAnNPMPackageRunsNoCode(t *testing.T) {
	ran := filepath.Join(t.TempDir(), "ran")
	nested := repository(t, map[string]string{"package.json": `{"name": "nested", "version": "1.0.0"}`})
	hostile := repository(t, map[string]string{
		"package.json": `{"name": "hostile", "version": "1.0.0", "scripts": {"prepare": "touch ` + ran + `"}, "dependencies": {"nested": "` + nested + `"}}`,
		".npmrc":       "git=./git.sh\n", "git.sh": "#!/bin/sh\ntouch " + ran + "\nexit 1\n",
	})
	y := packageManager(t, func(o *Options) {
		o.HostEnv["HOME"], o.HostEnv["NPM_CONFIG_REGISTRY"], o.HostEnv["NPM_CONFIG_CACHE"] = t.TempDir(), npmRegistry(t, map[string]string{"hostile": hostile}), t.TempDir()
	})
	_, err := y.Install(t.Context(), ws, source.Request{NPM: "notes@1.0.0"})
	expectRefusedWithoutRunning(t, err, ran, "apps.notes.installScripts: true")
}

// pythonAlone returns a directory that contains python3 but not uv.
func pythonAlone(t *testing.T) string {
	t.Helper()
	python := testenv.Program(t, "python3")
	alone := t.TempDir()
	writeAll(t, alone, map[string]string{"python3": "#!/bin/sh\nexec " + python + " \"$@\"\n"})
	return alone
}

// projectToBuild returns the files of a Python project whose build leaves a trace.
func projectToBuild(ran string) map[string]string {
	return map[string]string{
		"pyproject.toml": "[build-system]\nrequires = []\nbuild-backend = \"backend\"\nbackend-path = [\".\"]\n[project]\nname = \"notes\"\nversion = \"1.0.0\"\n",
		"backend.py":     "open('" + ran + "', 'w').close()\n",
		"PKG-INFO":       "Metadata-Version: 2.1\nName: notes\nVersion: 1.0.0\n",
	}
}

// This test uses the real pip and uv, offline.
func TestNoPartOfAPyPIProjectIsBuilt(t *testing.T) {
	uv := testenv.Program(t, "uv")
	for name, path := range map[string]string{"uv": filepath.Dir(uv), "pip": pythonAlone(t)} {
		install := func(t *testing.T, files, version string) error {
			t.Helper()
			y := packageManager(t, func(o *Options) {
				o.HostEnv = map[string]string{
					"PATH": path + ":/usr/bin:/bin", "UV_OFFLINE": "1", "UV_NO_INDEX": "1", "UV_FIND_LINKS": files, "UV_CACHE_DIR": t.TempDir(),
					"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": files,
				}
			})
			_, err := y.Install(t.Context(), ws, source.Request{PyPI: "notes" + version})
			return err
		}
		t.Run(name+" with a project that has no wheel", func(t *testing.T) {
			ran, files := filepath.Join(t.TempDir(), "ran"), t.TempDir()
			packed := map[string]string{}
			for name, text := range projectToBuild(ran) {
				packed["notes-1.0.0/"+name] = text
			}
			if err := os.WriteFile(filepath.Join(files, "notes-1.0.0.tar.gz"), archive(t, packed), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, version := range []string{"", "@1.0.0"} {
				expectRefusedWithoutRunning(t, install(t, files, version), ran, "notes")
			}
		})
		t.Run(name+" with a wheel that requires a directory", func(t *testing.T) {
			ran, dir := filepath.Join(t.TempDir(), "ran"), t.TempDir()
			writeAll(t, dir, projectToBuild(ran))
			says := map[string]string{"pip": "would have to be built", "uv": "URL dependency"}[name]
			expectRefusedWithoutRunning(t, install(t, wheelFor(t, ">=3.8\nRequires-Dist: hostile @ file://"+dir), "@1.0.0"), ran, says)
		})
	}
}

// This test uses the real uv. To compile wheels, uv runs the Python of the environment, which executes .pth files.
func TestAWheelRunsNoCodeEvenIfTheOperatorCompilesWheels(t *testing.T) {
	uv := testenv.Program(t, "uv")
	for name, text := range map[string]string{"the environment": "", "uv.toml": "[pip]\ncompile-bytecode = true\n"} {
		t.Run(name, func(t *testing.T) {
			ran, settings := filepath.Join(t.TempDir(), "ran"), filepath.Join(t.TempDir(), "uv.toml")
			if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			wheels := wheelWith(t, ">=3.8", map[string]string{"notes.pth": "import os; open('" + ran + "', 'w').close()\n", "notes.py": ""})
			y := packageManager(t, func(o *Options) {
				o.HostEnv = map[string]string{
					"PATH": filepath.Dir(uv) + ":/usr/bin:/bin", "HOME": getenv("HOME"), "UV_OFFLINE": "1", "UV_NO_INDEX": "1", "UV_FIND_LINKS": wheels, "UV_CACHE_DIR": t.TempDir(),
					"UV_CONFIG_FILE": settings,
				}
				if text == "" {
					o.HostEnv["UV_COMPILE_BYTECODE"] = "1"
				}
			})
			_, err := y.Install(t.Context(), ws, source.Request{PyPI: "notes@1.0.0"})
			expectRefusedWithoutRunning(t, err, ran, "the PyPI project \"notes\" has no command")
		})
	}
}

func expectRefusedWithoutRunning(t *testing.T, err error, ran, says string) {
	t.Helper()
	expect(t, "code", core.CodeOf(err), core.CodeInstallFailed)
	if !strings.Contains(core.TextOf(err), says) {
		t.Errorf("the message does not say %q: %v", says, err)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a file in the package was executed")
	}
}
