package install

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// installerEnvironment passes this machine's settings of npm, uv and pip to the server: proxies, certificates and
// mirrors.
func installerEnvironment(s *harness.Server) {
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(strings.ToUpper(variable), "=")
		for _, prefix := range []string{"NPM_CONFIG_", "PIP_", "UV_", "SSL_CERT_", "NODE_EXTRA_CA_CERTS"} {
			if strings.HasPrefix(name, prefix) || strings.HasSuffix(name, "_PROXY") {
				s.Environ = append(s.Environ, variable)
				break
			}
		}
	}
	s.Environ = append(s.Environ, "UV_SYSTEM_CERTS=1", "UV_NATIVE_TLS=1") // use the system's certificates, like npm and pip
}

// pathWith returns a PATH variable with only these programs.
func pathWith(t *testing.T, programs ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range programs {
		path, err := exec.LookPath(name)
		if err == nil {
			err = os.Symlink(path, filepath.Join(dir, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return "PATH=" + dir
}

func TestPackagesFromAnMCPRegistryStartAgainWithoutANetwork(t *testing.T) {
	t.Parallel()
	const timeVersion = "2026.10.19"
	version := pinned(t, harness.Memory)
	registry := mcpRegistry(t,
		published("io.e2e/memory", "7.0.0", object{
			"registryType": "npm", "identifier": harness.Memory, "version": version, "runtimeHint": "npx",
			"environmentVariables": []object{{"name": "MEMORY_FILE_PATH", "description": "The file that stores the memory.", "isRequired": true}},
		}),
		published("io.e2e/clock", "8.0.0", object{
			"registryType": "pypi", "identifier": "mcp-server-time", "version": timeVersion, "runtimeHint": "uvx",
			"packageArguments": []object{{"type": "named", "name": "--local-timezone", "value": "Europe/Berlin"}},
		}))
	outside := t.TempDir() // only the configuration can allow this directory for an app that is installed by name
	s := harness.Serve(t, installerEnvironment, harness.Config("registries:\n- {name: local, adapter: mcp-registry, url: "+registry.URL+"}\n"+
		"apps:\n  memory: {sandbox: {write: [\""+outside+"\"]}}\n"))

	if a := s.Do(t, "POST", "/v1/apps/install", `{"name":"io.e2e/memory"}`); a.Status != 400 || a.Object(t)["error"] != "credentials_required" ||
		!strings.Contains(a.Body, `"missing":[{"name":"MEMORY_FILE_PATH","title":"MEMORY_FILE_PATH","description":"The file that stores the memory.","sensitive":false}]`) {
		t.Errorf("install without the values that the package requires: %d %s", a.Status, a.Body)
	}
	remembered := filepath.Join(outside, "memory.jsonl")
	if got := s.Install(t, object{"name": "io.e2e/memory", "env": object{"MEMORY_FILE_PATH": remembered}}); got.Name != "memory" || got.Version != "7.0.0" || got.BundleName != "io.e2e/memory" {
		t.Errorf("the app is %+v", got)
	}
	s.Install(t, object{"name": "io.e2e/clock@8.0.0"})

	raw, err := os.ReadFile(onlyMatch(t, filepath.Join(s.Home, "apps/memory/bundle/*/node_modules", harness.Memory, "package.json")))
	var manifest struct{ Version string }
	if err != nil || json.Unmarshal(raw, &manifest) != nil || manifest.Version != version {
		t.Errorf("npm installed %s of %s (%v), want %s", manifest.Version, harness.Memory, err, version)
	}
	onlyMatch(t, filepath.Join(s.Home, "apps/clock/bundle/*/venv/lib/*/site-packages/mcp_server_time-"+timeVersion+".dist-info"))
	s.Call(t, "memory", "create_entities", object{"entities": []any{object{"name": "Ada", "entityType": "person", "observations": []any{}}}})
	s.Call(t, "clock", "get_current_time", object{"timezone": "Europe/Berlin"})

	// From here on, there is no registry, no installer, and no network for an installer.
	s.Stop()
	registry.Close()
	s.Environ = []string{pathWith(t, "node"), "HOME=" + t.TempDir(), "LANG=C.UTF-8", "HTTPS_PROXY=http://127.0.0.1:1", "HTTP_PROXY=http://127.0.0.1:1"}
	s.Start()
	s.WaitForStatus(t, "memory", "running")
	s.WaitForStatus(t, "clock", "running")
	if got := s.Call(t, "memory", "read_graph", nil); !strings.Contains(harness.ToText(t, got), "Ada") {
		t.Errorf("the memory contains %v", got)
	}
	if got := s.Call(t, "clock", "get_current_time", object{"timezone": "Europe/Berlin"}); !strings.Contains(harness.ToText(t, got), "Europe/Berlin") {
		t.Errorf("the clock returned %v", got)
	}
	a := s.Do(t, "POST", "/v1/apps/install", `{"name":"io.e2e/another"}`)
	if message, _ := a.Object(t)["message"].(string); a.Status != 500 || !strings.Contains(message, "registry local could not be reached: ") ||
		!strings.Contains(message, strings.TrimPrefix(registry.URL, "http://")) || !strings.Contains(message, "connection refused") {
		t.Errorf("installing by name while the registry is down: %d %s", a.Status, a.Body)
	}
}

// pinned returns the exact version of an npm package in test/npm.
func pinned(t *testing.T, pkg string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(testenv.Root(t), "test", "npm", "package.json"))
	var manifest struct{ Dependencies map[string]string }
	if err != nil || json.Unmarshal(raw, &manifest) != nil || manifest.Dependencies[pkg] == "" {
		t.Fatalf("test/npm/package.json has no %s: %v", pkg, err)
	}
	return manifest.Dependencies[pkg]
}

// onlyMatch returns the path that matches a pattern. The test fails unless there is exactly one.
func onlyMatch(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) != 1 {
		t.Fatalf("%d paths match %s: %v", len(found), pattern, err)
	}
	return found[0]
}

func TestAPackageRunsTheRequestedCommand(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, installerEnvironment)
	project := "mcp-server-time[extra]==2026.10.19"
	if a := s.Do(t, "POST", "/v1/apps/install", object{"pypi": project, "bin": "clock"}); a.Status != 500 || !strings.Contains(a.Body, `has no command \"clock\"; it has mcp-server-time`) {
		t.Errorf("a command that the package does not have: %d %s", a.Status, a.Body)
	}
	if a := s.Do(t, "POST", "/v1/apps/import", object{"mcpServers": object{"clock": object{"command": "uvx", "args": []string{"--from", project, "python", "-m", "mcp_server_time"}}}}); !strings.Contains(a.Body, `"status":"installed"`) {
		t.Fatalf("a project and its command: %d %s", a.Status, a.Body)
	}
	s.Call(t, "clock", "get_current_time", object{"timezone": "Europe/Berlin"})
}
