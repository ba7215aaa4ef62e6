package e2e

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
)

type object = map[string]any

// mcpRegistry answers for servers as the official registry does. What they are made of lies where
// it always does, in npm and PyPI.
func mcpRegistry(t *testing.T, servers ...object) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v0.1/servers/{name}/versions/{version}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		name, _ := url.PathUnescape(r.PathValue("name"))
		for _, s := range servers {
			if v := r.PathValue("version"); name == s["name"] && (v == "latest" || v == s["version"]) {
				_ = json.NewEncoder(w).Encode(object{"server": s, "_meta": object{"io.modelcontextprotocol.registry/official": object{"status": "active", "isLatest": true}}})
				return
			}
		}
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(object{"error": "Server not found"})
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// published is an entry of a registry with one package.
func published(name, version string, pkg object) object {
	pkg["transport"] = object{"type": "stdio"}
	return object{"name": name, "description": "about " + name, "version": version, "packages": []object{pkg}}
}

// asInstallers passes on what npm, uv and pip are notified on this machine: proxies, certificates,
// mirrors.
func asInstallers(s *server) {
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(strings.ToUpper(variable), "=")
		for _, prefix := range []string{"NPM_CONFIG_", "PIP_", "UV_", "SSL_CERT_", "NODE_EXTRA_CA_CERTS"} {
			if strings.HasPrefix(name, prefix) || strings.HasSuffix(name, "_PROXY") {
				s.env = append(s.env, variable)
				break
			}
		}
	}
	s.env = append(s.env, "UV_SYSTEM_CERTS=1", "UV_NATIVE_TLS=1") // as npm and pip do
}

// onlyWith is a PATH on which nothing is found but these programs.
func onlyWith(t *testing.T, programs ...string) string {
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

func TestPackagesOfAnMCPRegistryAreInstalledOnceAndStartWithoutANetwork(t *testing.T) {
	t.Parallel()
	const timeVersion = "2026.10.19"
	version := pinned(t, memory)
	registry := mcpRegistry(t,
		published("io.e2e/memory", "7.0.0", object{
			"registryType": "npm", "identifier": memory, "version": version, "runtimeHint": "npx",
			"environmentVariables": []object{{"name": "MEMORY_FILE_PATH", "description": "Where it remembers.", "isRequired": true}},
		}),
		published("io.e2e/clock", "8.0.0", object{
			"registryType": "pypi", "identifier": "mcp-server-time", "version": timeVersion, "runtimeHint": "uvx",
			"packageArguments": []object{{"type": "named", "name": "--local-timezone", "value": "Europe/Berlin"}},
		}))
	outside := t.TempDir() // only the configuration opens a directory to an app that is installed by name
	s := serve(t, asInstallers, config("registries:\n- {name: local, adapter: mcp-registry, url: "+registry.URL+"}\n"+
		"apps:\n  memory: {sandbox: {write: [\""+outside+"\"]}}\n"))

	if a := s.do(t, "POST", "/v1/apps/install", `{"name":"io.e2e/memory"}`); a.status != 400 || a.object(t)["error"] != "credentials_required" ||
		!strings.Contains(a.body, `"missing":[{"name":"MEMORY_FILE_PATH","title":"MEMORY_FILE_PATH","description":"Where it remembers.","sensitive":false}]`) {
		t.Errorf("install without what the package asks for: %d %s", a.status, a.body)
	}
	remembered := filepath.Join(outside, "memory.jsonl")
	if got := s.install(t, object{"name": "io.e2e/memory", "env": object{"MEMORY_FILE_PATH": remembered}}); got.Name != "memory" || got.Version != "7.0.0" || got.BundleName != "io.e2e/memory" {
		t.Errorf("the app is %+v", got)
	}
	s.install(t, object{"name": "io.e2e/clock@8.0.0"})

	raw, err := os.ReadFile(only(t, filepath.Join(s.home, "apps/memory/bundle/*/node_modules", memory, "package.json")))
	var manifest struct{ Version string }
	if err != nil || json.Unmarshal(raw, &manifest) != nil || manifest.Version != version {
		t.Errorf("npm installed %s of %s (%v), want %s", manifest.Version, memory, err, version)
	}
	only(t, filepath.Join(s.home, "apps/clock/bundle/*/venv/lib/*/site-packages/mcp_server_time-"+timeVersion+".dist-info"))
	s.call(t, "memory", "create_entities", object{"entities": []any{object{"name": "Ada", "entityType": "person", "observations": []any{}}}})
	s.call(t, "clock", "get_current_time", object{"timezone": "Europe/Berlin"})

	// From here on there is no registry, no installer, and no way to the network that one would use.
	s.terminate()
	registry.Close()
	s.env = []string{onlyWith(t, "node"), "HOME=" + t.TempDir(), "LANG=C.UTF-8", "HTTPS_PROXY=http://127.0.0.1:1", "HTTP_PROXY=http://127.0.0.1:1"}
	s.start()
	s.reaches(t, "memory", "running")
	s.reaches(t, "clock", "running")
	if got := s.call(t, "memory", "read_graph", nil); !strings.Contains(toText(t, got), "Ada") {
		t.Errorf("the memory holds %v", got)
	}
	if got := s.call(t, "clock", "get_current_time", object{"timezone": "Europe/Berlin"}); !strings.Contains(toText(t, got), "Europe/Berlin") {
		t.Errorf("the clock says %v", got)
	}
	a := s.do(t, "POST", "/v1/apps/install", `{"name":"io.e2e/another"}`)
	if message, _ := a.object(t)["message"].(string); a.status != 500 || !strings.Contains(message, "registry local could not be reached: ") ||
		!strings.Contains(message, strings.TrimPrefix(registry.URL, "http://")) || !strings.Contains(message, "connection refused") {
		t.Errorf("install by a name while the registry is away: %d %s", a.status, a.body)
	}
}

// pinned is the exact version of a package in test/npm.
func pinned(t *testing.T, pkg string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(testenv.Root(t), "test", "npm", "package.json"))
	var manifest struct{ Dependencies map[string]string }
	if err != nil || json.Unmarshal(raw, &manifest) != nil || manifest.Dependencies[pkg] == "" {
		t.Fatalf("test/npm does not name %s: %v", pkg, err)
	}
	return manifest.Dependencies[pkg]
}

// only is the one path that a pattern matches.
func only(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) != 1 {
		t.Fatalf("%d paths match %s: %v", len(found), pattern, err)
	}
	return found[0]
}
