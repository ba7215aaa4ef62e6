package apps

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/process"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
	"github.com/ropewalk/ropewalk/internal/testenv"
)

// confined sets the sandbox of a manager in the same way as the server does, but not above level.
func confined(t *testing.T, level sandbox.Level) func(*Options) {
	t.Helper()
	probe := process.ProbeSandbox(t.Context())
	if probe.Level < level {
		t.Fatalf("this machine's sandbox level is %s (%s), but this test needs %s", probe.Level, probe.Reason, level)
	}
	return func(o *Options) {
		o.Confinement.Probe, o.Confinement.Home, o.Sandbox = probe, o.Home, config.Sandbox{Level: level}
	}
}

// nodeServer is an MCP server without tools.
const nodeServer = `
require("readline").createInterface({input: process.stdin}).on("line", line => {
  const m = JSON.parse(line);
  if (m.id === undefined) return;
  const result = m.method === "initialize" ? {protocolVersion: "2025-06-18", capabilities: {}, serverInfo: {name: "notes", version: "1.0.0"}} : {};
  console.log(JSON.stringify({jsonrpc: "2.0", id: m.id, result}));
});
`

// snoop is an install script that records what it can do but should not be able to do.
const snoop = `
const fs = require("fs"), net = require("net"), path = require("path"), found = [];
const note = (what, f) => { try { f(); found.push(what); } catch {} };
const [home, secret, port, server] = process.argv.slice(2);
note("the server's home", () => fs.readFileSync(path.join(home, "marker")));
note("a secret of the server", () => fs.readFileSync(secret));
for (const dir of [home, path.join(home, "apps"), path.dirname(secret)]) {
  try { fs.writeFileSync(path.join(dir, "planted"), ""); } catch {}
}
note("a process of the server", () => fs.readFileSync("/proc/" + server + "/environ"));
note("the environment", () => { if (!process.env.CANARY) throw "none"; });
const done = () => fs.writeFileSync("found.json", JSON.stringify(found));
const socket = net.connect(port, "127.0.0.1", () => { found.push("loopback"); socket.destroy(); done(); });
socket.on("error", done);
`

func TestPackageManagersCannotReachTheServer(t *testing.T) {
	for _, level := range []sandbox.Level{sandbox.LevelLandlock, sandbox.LevelNamespaces} {
		t.Run(level.String(), func(t *testing.T) {
			secret := filepath.Join(t.TempDir(), "secret")
			if err := os.WriteFile(secret, []byte("s3cret"), 0o600); err != nil {
				t.Fatal(err)
			}
			loopback := httptest.NewServer(http.NotFoundHandler())
			t.Cleanup(loopback.Close)
			var home string
			y := packageManager(t, func(o *Options) {
				confined(t, level)(o)
				home = o.Home
				snooping := strings.Join([]string{"node snoop.js", o.Home, secret, loopback.URL[strings.LastIndex(loopback.URL, ":")+1:], strconv.Itoa(os.Getpid())}, " ")
				o.HostEnv["NPM_CONFIG_REGISTRY"] = npmPackage(t, map[string]any{"scripts": map[string]string{"postinstall": snooping}},
					map[string]string{"snoop.js": snoop, "main.js": nodeServer})
				o.HostEnv["HOME"], o.HostEnv["CANARY"] = filepath.Dir(secret), "sings"
				o.Configured = map[string]config.App{"notes": {InstallScripts: true}}
			})
			writeAll(t, home, map[string]string{"marker": "m"})
			_, err := y.Install(t.Context(), ws, source.Request{NPM: "notes@1.0.0"})
			if err != nil {
				t.Fatal(err)
			}
			reports, err := filepath.Glob(filepath.Join(home, "apps", "notes", "bundle", "*", "node_modules", "notes", "found.json"))
			if err != nil || len(reports) != 1 {
				t.Fatalf("the script of the package left %v (%v)", reports, err)
			}
			raw, err := os.ReadFile(reports[0])
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			if err := json.Unmarshal(raw, &found); err != nil || len(found) > 0 {
				t.Errorf("an install script reached %s (%v)", raw, err)
			}
			for _, dir := range []string{home, filepath.Join(home, "apps"), filepath.Dir(secret)} {
				if _, err := os.Stat(filepath.Join(dir, "planted")); err == nil {
					t.Errorf("an install script wrote to %s", dir)
				}
			}
		})
	}
}

func TestAddressesInPackagesCannotPointToThisMachine(t *testing.T) {
	var asked atomic.Int64
	service := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(service.Close)
	wheels := wheelFor(t, ">=3.8\nRequires-Dist: other @ "+service.URL+"/other-1.0.0-py3-none-any.whl")
	for name, c := range map[string]struct {
		request source.Request
		env     map[string]string
	}{
		"npm": {source.Request{NPM: "notes@1.0.0"}, map[string]string{"NPM_CONFIG_REGISTRY": npmRegistry(t, map[string]string{"other": service.URL + "/other.tgz"}), "NPM_CONFIG_FETCH_RETRIES": "0"}},
		"pip": {source.Request{PyPI: "notes@1.0.0"}, map[string]string{"PATH": pythonAlone(t) + ":/usr/bin:/bin", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": wheels, "PIP_RETRIES": "0"}},
	} {
		t.Run(name, func(t *testing.T) {
			y := packageManager(t, func(o *Options) {
				confined(t, sandbox.LevelNamespaces)(o)
				maps.Copy(o.HostEnv, c.env)
			})
			_, err := y.Install(t.Context(), ws, c.request)
			expect(t, "code", core.CodeOf(err), core.CodeInstallFailed)
			if says := "package managers run in a sandbox"; !strings.Contains(core.TextOf(err), says) {
				t.Errorf("the message does not say %q: %v", says, err)
			}
			if n := asked.Load(); n > 0 {
				t.Errorf("the service got %d requests", n)
			}
		})
	}
}

func TestPyPIProjectsAreInstalledInTheSandbox(t *testing.T) {
	uv := testenv.Program(t, "uv")
	python := testenv.Program(t, "python3")
	wheels := wheelFor(t, ">=3.8")
	for name, path := range map[string]string{"uv": filepath.Dir(uv), "pip": pythonAlone(t)} {
		t.Run(name, func(t *testing.T) {
			y := packageManager(t, func(o *Options) {
				confined(t, sandbox.LevelNamespaces)(o)
				o.Sandbox.Read = []string{filepath.Dir(filepath.Dir(python))} // the directory of pythonAlone leads there
				maps.Copy(o.HostEnv, map[string]string{
					"PATH": path + ":/usr/bin:/bin", "HOME": getenv("HOME"), "UV_OFFLINE": "1", "UV_NO_INDEX": "1", "UV_FIND_LINKS": wheels, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": wheels,
				})
			})
			_, err := y.Install(t.Context(), ws, source.Request{PyPI: "notes"})
			if says := "the PyPI project \"notes\" has no command"; !strings.Contains(core.TextOf(err), says) {
				t.Errorf("the message does not say %q: %v", says, err)
			}
		})
	}
}
