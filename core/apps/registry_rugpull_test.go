package apps

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/registry"
	"github.com/ropewalk/ropewalk/plugins/registry/mcpregistry"
	"github.com/ropewalk/ropewalk/plugins/registry/mpak"
)

// webRegistry is an HTTP server that acts both as an mpak registry and as an MCP registry. It has a single package. The
// metadata and the file that it sends can differ.
type webRegistry struct {
	*httptest.Server
	mu      sync.Mutex
	version string
	sum     string // according to the metadata
	size    int    // according to the metadata
	file    []byte // as sent
	to      string // where downloads are redirected to; "" for no redirect
}

func newWebRegistry(t *testing.T, version string, file []byte) *webRegistry {
	t.Helper()
	w := &webRegistry{}
	w.offer(version, file)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/bundles/{scope}/{name}", w.respond(func() any {
		return map[string]any{"name": "@test/notes", "latest_version": w.version, "certification_level": 2}
	}))
	mux.HandleFunc("GET /v1/bundles/{scope}/{name}/versions/{version}", w.respond(func() any {
		return map[string]any{"version": w.version, "artifacts": []any{map[string]any{
			"platform": map[string]string{"os": "any", "arch": "any"}, "digest": "sha256:" + w.sum, "size": w.size,
		}}}
	}))
	mux.HandleFunc("GET /v1/bundles/{scope}/{name}/versions/{version}/download", w.respond(func() any {
		return map[string]any{"url": w.URL + "/file", "bundle": map[string]any{"sha256": w.sum, "size": w.size}}
	}))
	entry := func() any {
		return map[string]any{
			"server": map[string]any{
				"name": "io.test/notes", "version": w.version, "description": "notes",
				"packages": []any{map[string]any{
					"registryType": "mcpb", "identifier": w.URL + "/file", "version": w.version, "fileSha256": w.sum, "transport": map[string]string{"type": "stdio"},
				}},
			},
			"_meta": map[string]any{"io.modelcontextprotocol.registry/official": map[string]any{"status": "active", "isLatest": true}},
		}
	}
	mux.HandleFunc("GET /v0.1/servers/{name}/versions", w.respond(func() any { return map[string]any{"servers": []any{entry()}} }))
	mux.HandleFunc("GET /v0.1/servers/{name}/versions/{version}", w.respond(entry))
	mux.HandleFunc("GET /file", func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.to != "" {
			http.Redirect(rw, r, w.to, http.StatusFound)
			return
		}
		_, _ = rw.Write(w.file)
	})
	w.Server = httptest.NewServer(mux)
	t.Cleanup(w.Close)
	return w
}

func (w *webRegistry) respond(what func() any) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		w.mu.Lock()
		defer w.mu.Unlock()
		rw.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(rw).Encode(what())
	}
}

// offer makes the registry publish a version with a file's checksum and size, and send that file.
func (w *webRegistry) offer(version string, file []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	sum := sha256.Sum256(file)
	w.version, w.sum, w.size, w.file, w.to = version, hex.EncodeToString(sum[:]), len(file), file, ""
}

func (w *webRegistry) change(f func(*webRegistry)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(w)
}

// client returns the adapter for a format.
func (w *webRegistry) client(t *testing.T, format string) registry.Registry {
	t.Helper()
	settings := plugins.Config{JSON: json.RawMessage(fmt.Sprintf(`{"url": %q}`, w.URL))}
	if format == "mpak" {
		r := mpak.New()
		if err := r.Configure(t.Context(), settings); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Close() })
		return r
	}
	r := mcpregistry.New()
	if err := r.Configure(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// bundleBytes returns an .mcpb file of the app notes. Files with different descriptions differ.
func bundleBytes(t *testing.T, version, says string) []byte {
	t.Helper()
	raw, err := os.ReadFile(bundleFile(t, "@test/notes", modeNormal, map[string]any{"version": version, "description": says}))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// registryPulls returns ways in which a registry can return an incorrect or changed response. good is the original file
// of version 1.2.3; evil is another file that claims to be 1.2.3.
func registryPulls(good, evil []byte, other *webRegistry) map[string]func(*webRegistry) {
	sum := sha256.Sum256(good)
	return map[string]func(*webRegistry){
		"other bytes":                          func(w *webRegistry) { w.file = evil },
		"other bytes of the same length":       func(w *webRegistry) { w.file = bytes.Clone(good); w.file[len(good)/2] ^= 1 },
		"only part of the bytes":               func(w *webRegistry) { w.file = good[:len(good)-1] },
		"more bytes":                           func(w *webRegistry) { w.file = append(bytes.Clone(good), 0) },
		"another checksum":                     func(w *webRegistry) { w.sum = strings.Repeat("a", 64) },
		"no checksum":                          func(w *webRegistry) { w.sum = "" },
		"a checksum of another kind":           func(w *webRegistry) { w.sum = hex.EncodeToString(sum[:20]) },
		"a redirect to another server's bytes": func(w *webRegistry) { w.to = other.URL + "/file" },
		"a redirect into the private network":  func(w *webRegistry) { w.to = "http://10.0.0.1/file" },
		"a redirect to a cloud's metadata":     func(w *webRegistry) { w.to = "http://169.254.169.254/latest/meta-data" },
		"a redirect to a file":                 func(w *webRegistry) { w.to = "file:///etc/passwd" },
		"a redirect to itself":                 func(w *webRegistry) { w.to = "/file" },
	}
}

// TestAnAlteredRegistryResponseIsNotServed changes a registry before an install, and before the update and the
// restart of an app that was installed from it.
func TestAnAlteredRegistryResponseIsNotServed(t *testing.T) {
	good, evil := bundleBytes(t, "1.2.3", "good"), bundleBytes(t, "1.2.3", "evil")
	other := newWebRegistry(t, "1.2.3", evil)
	pulls := 0
	for format, name := range map[string]string{"mpak": "@test/notes", "mcp-registry": "io.test/notes"} {
		web := newWebRegistry(t, "1.2.3", good)
		from := source.NamedRegistry{Name: "web", Registry: web.client(t, format)}
		y, _ := realManager(t, t.TempDir(), newMemoryRecords(), with(from))
		install(t, y, source.Request{Name: name, ServerName: "notes"})
		// An update follows a changed version: the registry publishes 1.3.0 and sends something else.
		for what, pull := range registryPulls(good, evil, other) {
			t.Run(format+" "+what, func(t *testing.T) {
				web.offer("1.3.0", good)
				web.change(pull)
				_, err := y.Install(t.Context(), ws, source.Request{Name: name, ServerName: "again"})
				if core.CodeOf(err) != core.CodeInstallFailed {
					t.Errorf("install: %v", err)
				}
				_, err = y.Update(t.Context(), ws, "notes", source.UpdateRequest{})
				if core.CodeOf(err) != core.CodeInstallFailed {
					t.Errorf("update: %v", err)
				}
				expectOriginal(t, y)
				pulls += 2
			})
		}
		t.Run(format+" another file under the version that is installed", func(t *testing.T) {
			web.offer("1.2.3", evil)
			_, err := y.Update(t.Context(), ws, "notes", source.UpdateRequest{})
			if core.CodeOf(err) != core.CodeInstallFailed || !strings.Contains(core.TextOf(err), "1.2.3") {
				t.Errorf("update: %v", err)
			}
			expectOriginal(t, y)
			pulls++
		})
		t.Run(format+" at a restart", func(t *testing.T) {
			web.offer("1.2.3", evil)
			if _, err := y.Restart(t.Context(), ws, "notes"); err != nil {
				t.Fatal(err)
			}
			expectOriginal(t, y)
			pulls++
		})
		t.Run(format+" a version that was not requested", func(t *testing.T) {
			web.offer("6.6.6", evil)
			if _, err := y.Update(t.Context(), ws, "notes", source.UpdateRequest{Version: "1.4.0"}); core.CodeOf(err) != core.CodeInstallFailed {
				t.Errorf("update: %v", err)
			}
			if _, err := y.Install(t.Context(), ws, source.Request{Name: name + "@1.4.0", ServerName: "again"}); core.CodeOf(err) != core.CodeInstallFailed {
				t.Errorf("install: %v", err)
			}
			expectOriginal(t, y)
			pulls += 2
		})
	}
	expect(t, "rug pulls", pulls, 2*(12*2+4))
}

// TestAnUpdateComesFromTheRegistryThatTheAppWasInstalledFrom offers an app's name in another registry while its own
// registry is unavailable.
func TestAnUpdateComesFromTheRegistryThatTheAppWasInstalledFrom(t *testing.T) {
	own, other := newWebRegistry(t, "1.2.3", bundleBytes(t, "1.2.3", "good")), newWebRegistry(t, "2.0.0", bundleBytes(t, "2.0.0", "evil"))
	y, _ := realManager(t, t.TempDir(), newMemoryRecords(), with(
		source.NamedRegistry{Name: "own", Registry: own.client(t, "mpak")}, source.NamedRegistry{Name: "other", Registry: other.client(t, "mpak")}))
	install(t, y, source.Request{Name: "@test/notes"})
	own.Close()
	_, err := y.Update(t.Context(), ws, "notes", source.UpdateRequest{})
	if core.CodeOf(err) != core.CodeInstallFailed || !strings.Contains(core.TextOf(err), "registry other") {
		t.Errorf("update: %v", err)
	}
	expectOriginal(t, y)
}

// expectOriginal fails unless the good version of notes is installed and running, and is the only app.
func expectOriginal(t *testing.T, y *Manager) {
	t.Helper()
	if all := y.List(ws); len(all) != 1 {
		t.Errorf("%d apps are installed", len(all))
	}
	d, err := y.Details(ws, "notes")
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "description", d.Description, "good")
	expect(t, "version", d.Version, "1.2.3")
	expect(t, "status", d.Status, core.StateRunning)
	if got, err := callTool(t, y, "notes", "echo", "x"); err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
