package install

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

type object = map[string]any

// mcpRegistry serves the API of the official registry with the given servers. Their packages are on npm and PyPI.
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

// published returns a registry entry for a server with one package.
func published(name, version string, pkg object) object {
	pkg["transport"] = object{"type": "stdio"}
	return object{"name": name, "description": "about " + name, "version": version, "packages": []object{pkg}}
}

func TestASearchInAnUnknownRegistryReturns404(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	if a := s.Do(t, "GET", "/v1/registries/search?query=x&registry=moon", nil); a.Status != 404 || a.Body != `{"error":"not_found","message":"there is no registry \"moon\""}` {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}
