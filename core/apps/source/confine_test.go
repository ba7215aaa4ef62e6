package source

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

func TestTheSettingsOfPackageManagersDetermineWhatTheirSandboxAllows(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a dir")
	home, server, wheels, file := filepath.Join(dir, "home"), filepath.Join(dir, "server"), filepath.Join(dir, "wheels"), filepath.Join(dir, "home", "ca.pem")
	for _, d := range []string{filepath.Join(home, ".config", "pip"), filepath.Join(home, ".config", "uv"), server, wheels} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		file:                          "",
		filepath.Join(home, ".npmrc"): "registry=http://localhost:4873/\n; http://comment.example\n//localhost:4873/:_authToken=t\ncafile=~/ca.pem\nproxy = 127.0.0.1:3128\n",
		filepath.Join(home, ".config", "pip", "pip.conf"): "[global]\nindex-url = https://user:word@pypi.example/simple\nfind-links =\n    " + wheels + "\n# http://comment.example\n",
		filepath.Join(home, ".config", "uv", "uv.toml"):   "find-links = \"" + dir + "\"\n[[index]]\nurl = \"http://[::1]:8080/simple\"\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := &Resolver{Home: server}
	env := map[string]string{
		"HOME": home, "PATH": "/usr/bin", "HTTPS_PROXY": "proxy.example:8080", "no_proxy": "other.example:1", "NO_COLOR": "http://no.example", "LANG": "/usr",
		"NPM_CONFIG_PREFIX": wheels, "NPM_CONFIG_CAFILE": "${HOME}/ca.pem", "UV_INDEX": "a=https://a.example/simple b=http://b.example:81/simple", "PIP_CERT": file,
	}
	for manager, want := range map[string]struct {
		file         string
		hosts, paths []string
	}{
		"npm": {".npmrc", []string{"127.0.0.1:3128", "localhost:4873", "proxy.example:8080"}, []string{file}},
		// The find-links directory contains the server's home, so it is not opened.
		"uv":  {".config/uv/uv.toml", []string{"[::1]:8080", "a.example:443", "b.example:81", "proxy.example:8080"}, nil},
		"pip": {".config/pip/pip.conf", []string{"proxy.example:8080", "pypi.example:443"}, []string{file, wheels}},
	} {
		t.Run(manager, func(t *testing.T) {
			s := r.installerSettings(env, manager)
			hosts := s.destinations() // the machine has settings as well
			for _, host := range want.hosts {
				if !slices.Contains(hosts, host) {
					t.Errorf("the hosts are %q, without %s", hosts, host)
				}
			}
			for _, other := range []string{"other.example:1", "no.example:80", "comment.example:80"} {
				if slices.Contains(hosts, other) {
					t.Errorf("%s is not a host that package managers may reach", other)
				}
			}
			if got := slices.DeleteFunc(s.paths(), func(path string) bool { return !instance.Within(path, dir) }); !slices.Equal(got, want.paths) {
				t.Errorf("the paths are %q, want %q", got, want.paths)
			}
			if got := slices.DeleteFunc(s.files, func(path string) bool { return !instance.Within(path, dir) }); !slices.Equal(got, []string{filepath.Join(home, want.file)}) {
				t.Errorf("the files are %q, want %s", got, want.file)
			}
		})
	}
}

func TestSettingsThatTheSandboxCannotReadAreRejected(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("an ordinary user cannot create another user's file")
	}
	home := t.TempDir()
	npmrc := filepath.Join(home, ".npmrc")
	if err := os.WriteFile(npmrc, []byte("registry=http://localhost:4873/\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	read := func() error {
		s := (&Resolver{Home: "/nowhere"}).installerSettings(map[string]string{"HOME": home}, "npm")
		return s.checkReadable(sandbox.LevelNamespaces)
	}
	if err := read(); err != nil {
		t.Error(err)
	}
	if err := os.Chown(npmrc, 1234, 1234); err != nil {
		t.Fatal(err)
	}
	if err := read(); err == nil || !strings.Contains(err.Error(), npmrc) {
		t.Errorf("settings of another user: %v", err)
	}
	if err := os.Chmod(npmrc, 0o604); err != nil {
		t.Fatal(err)
	}
	if err := read(); err != nil {
		t.Error(err)
	}
}

func TestOnlyTheCachesThatTheOperatorNamesAreUsed(t *testing.T) {
	home := t.TempDir()
	env := map[string]string{"HOME": home, "NPM_CONFIG_CACHE": "~/theirs", "UV_CACHE_DIR": "", "PIP_CACHE_DIR": "relative"}
	got := moveCaches(env, "/own")
	slices.Sort(got)
	if want := []string{"/own/node-gyp", "/own/pip", "/own/uv", filepath.Join(home, "theirs")}; !slices.Equal(got, want) {
		t.Errorf("the caches are %q, want %q", got, want)
	}
	if env["UV_CACHE_DIR"] != "/own/uv" || env["PIP_CACHE_DIR"] != "/own/pip" || env["npm_config_cache"] != filepath.Join(home, "theirs") || env["NPM_CONFIG_CACHE"] != "" {
		t.Errorf("the environment is %v", env)
	}
}

func TestOnlyRegularFilesOfPackagesAreRead(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "package.json")
	for path, text := range map[string]string{outside: `{"bin":"secret"}`, filepath.Join(dir, "inside"): "x"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"outside": outside, "zero": "/dev/zero", "link": "inside"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"inside": "x", "link": "x", "outside": "", "zero": "", "pipe": "", ".": "", "../x": ""} {
		if raw, err := readInstalled(dir, name); string(raw) != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q (%v)", name, raw, err)
		}
	}
}

func TestAPackageWithScriptsIsFoundOnceHoweverManyLinksLeadToIt(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"node_modules/a/package.json":                   `{"name":"a","scripts":{"install":"x"}}`,
		"node_modules/a/test/package.json":              `{"name":"fixture","scripts":{"install":"x"}}`,
		"node_modules/a/node_modules/@s/b/package.json": `{"name":"@s/b","scripts":{"postinstall":"x"}}`,
		"node_modules/c/package.json":                   `{"name":"c","scripts":{"test":"x"}}`,
		"node_modules/@s/native/package.json":           `{"name":"@s/native"}`,
		"node_modules/@s/native/binding.gyp":            "",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, link := range []string{"x", "y", "z"} {
		if err := os.Symlink("..", filepath.Join(dir, "node_modules", link)); err != nil {
			t.Fatal(err)
		}
	}
	names, err := packagesWithScripts(t.Context(), dir)
	if want := []string{"@s/b", "@s/native", "a"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("got %q (%v), want %q", names, err, want)
	}
}
