package mcpregistry_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/registry/mcpregistry"
	"github.com/ropewalk/ropewalk/plugins/registry/registrytest"
)

// published is a fake of the official registry. Entries with the same name are oldest first; the last one that was not
// deleted by hand is the latest.
type published struct {
	*httptest.Server
	holding sync.RWMutex // guards entries and files, which change while the server is running
	entries []map[string]any
	files   map[string][]byte // by path

	mu    sync.Mutex
	asked []string
}

type object = map[string]any

func publish(t *testing.T, entries ...map[string]any) *published {
	t.Helper()
	p := &published{entries: entries, files: map[string][]byte{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v0.1/servers", p.list)
	mux.HandleFunc("GET /v0.1/servers/{name}/versions", p.versions)
	mux.HandleFunc("GET /v0.1/servers/{name}/versions/{version}", p.version)
	mux.HandleFunc("GET /files/", func(w http.ResponseWriter, r *http.Request) {
		body, ok := p.files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(body)
	})
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.holding.RLock()
		defer p.holding.RUnlock()
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

// hold publishes a catalogue from the kit.
func (p *published) hold(_ context.Context, c registrytest.Catalogue) error {
	p.holding.Lock()
	defer p.holding.Unlock()
	p.entries, p.files = nil, map[string][]byte{}
	for _, b := range c.Bundles {
		for _, v := range b.Versions {
			more := packages(p.mcpb(v.Files[0].Path, v.Files[0].Body))
			more["title"], more["description"] = b.Title, b.Description
			p.entries = append(p.entries, entry(b.Name, v.Version, more))
		}
	}
	return nil
}

func name(entry object) string    { return entry["server"].(object)["name"].(string) }
func version(entry object) string { return entry["server"].(object)["version"].(string) }

func (p *published) of(want string) (all []object) {
	for _, e := range p.entries {
		if name(e) == want {
			all = append(all, e)
		}
	}
	return all
}

func (p *published) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("version") != "latest" {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	limit, _ := strconv.Atoi(q.Get("limit"))
	var found []object
	seen := map[string]bool{}
	for _, e := range p.entries {
		if all := p.of(name(e)); !seen[name(e)] && strings.Contains(name(e), q.Get("search")) {
			seen[name(e)] = true
			found = append(found, all[len(all)-1])
		}
	}
	key := func(e object) string { return name(e) + ":" + version(e) }
	slices.SortFunc(found, func(a, b object) int { return strings.Compare(key(a), key(b)) })
	skip := 0
	for skip < len(found) && key(found[skip]) <= q.Get("cursor") {
		skip++
	}
	end := min(skip+limit, len(found))
	metadata := object{"count": end - skip}
	if end < len(found) {
		metadata["nextCursor"] = key(found[end-1])
	}
	write(w, object{"servers": append([]object{}, found[skip:end]...), "metadata": metadata})
}

func (p *published) versions(w http.ResponseWriter, r *http.Request) {
	if all := p.of(p.name(r)); len(all) > 0 {
		write(w, object{"servers": all, "metadata": object{"count": len(all)}})
		return
	}
	notFound(w)
}

func (p *published) version(w http.ResponseWriter, r *http.Request) {
	all := p.of(p.name(r))
	for i, e := range all {
		if v := r.PathValue("version"); v == version(e) || v == "latest" && i == len(all)-1 {
			write(w, e)
			return
		}
	}
	notFound(w)
}

func (p *published) name(r *http.Request) string {
	p.mu.Lock()
	p.asked = append(p.asked, r.URL.EscapedPath())
	p.mu.Unlock()
	unescaped, _ := url.PathUnescape(r.PathValue("name"))
	return unescaped
}

func write(w http.ResponseWriter, answer object) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

func notFound(w http.ResponseWriter) {
	w.WriteHeader(http.StatusNotFound)
	write(w, object{"error": "Server not found"})
}

// entry returns one version of a server. more has further fields of server.json.
func entry(name, version string, more object) object {
	server := object{"name": name, "version": version, "description": "about " + name, "title": "Title"}
	for key, value := range more {
		server[key] = value
	}
	return object{"server": server, "_meta": object{"io.modelcontextprotocol.registry/official": object{"status": "active", "publishedAt": "2026-01-01T00:00:00Z", "isLatest": true}}}
}

func status(e object, status string) object {
	e["_meta"].(object)["io.modelcontextprotocol.registry/official"].(object)["status"] = status
	return e
}

func npm(more object) object {
	p := object{"registryType": "npm", "identifier": "@example/server", "version": "4.5.6", "transport": object{"type": "stdio"}}
	for key, value := range more {
		p[key] = value
	}
	return p
}

func packages(all ...object) object { return object{"packages": all} }

// mcpb puts a file on the registry's own host and returns its package.
func (p *published) mcpb(file string, body []byte) object {
	sum := sha256.Sum256(body)
	p.files["/files/"+file] = body
	return object{"registryType": "mcpb", "identifier": p.URL + "/files/" + file, "version": "1.0.0", "fileSha256": hex.EncodeToString(sum[:]), "transport": object{"type": "stdio"}}
}

// whole returns a registry with every kind of package, and 20 more entries so that there are several pages.
func whole(t *testing.T) *published {
	t.Helper()
	p := publish(t)
	p.fill()
	return p
}

func (p *published) fill() {
	p.entries = append(p.entries,
		entry("io.example/bundle", "0.9.0", packages(p.mcpb("old.mcpb", []byte(strings.Repeat("old", 50_000))))),
		entry("io.example/bundle", "1.0.0", packages(p.mcpb("new.mcpb", []byte(strings.Repeat("new", 50_000))))),
		entry("io.example/npm", "2.0.0", packages(npm(object{"environmentVariables": []object{{"name": "API_KEY", "isRequired": true, "isSecret": true}}}))),
		entry("io.example/pypi", "3.0.0", packages(object{"registryType": "pypi", "identifier": "example", "version": "3.0.1", "transport": object{"type": "stdio"}})),
		entry("io.example/remote", "4.0.0", object{"remotes": []object{{"type": "streamable-http", "url": "https://example.com/mcp"}}}),
		entry("io.example/container", "5.0.0", packages(object{"registryType": "oci", "identifier": "docker.io/x:1", "transport": object{"type": "stdio"}})),
		status(entry("io.example/gone", "6.0.0", packages(npm(nil))), "deleted"))
	for i := range 20 {
		p.entries = append(p.entries, entry(fmt.Sprintf("io.example/more-%02d", i), "1.0.0", packages(npm(nil))))
	}
}

func (p *published) settings() string { return fmt.Sprintf(`{"url": %q}`, p.URL) }

func open(t *testing.T, p *published) *mcpregistry.Registry {
	t.Helper()
	r := mcpregistry.New()
	if err := r.Configure(t.Context(), plugins.Config{JSON: json.RawMessage(p.settings())}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}
