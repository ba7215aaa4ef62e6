package mpak_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/registry/mpak"
	"github.com/ropewalk/ropewalk/plugins/registry/registrytest"
)

type object = map[string]any

// published is a fake mpak registry. The address of a file works only once, as a signed URL works only for some time.
type published struct {
	*httptest.Server
	mu      sync.RWMutex // guards bundles, which change while the server is running
	bundles []shown
	signed  atomic.Int64
}

// shown is one bundle. Its versions are oldest first, each with a file per platform.
type shown struct {
	name     string
	level    int
	versions []release
}

type release struct {
	version string
	files   map[string]string // "linux/x64" -> bytes
}

func publish(t *testing.T, bundles ...shown) *published {
	t.Helper()
	p := &published{bundles: bundles}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/bundles/search", p.search)
	mux.HandleFunc("GET /v1/bundles/{scope}/{name}", p.detail)
	mux.HandleFunc("GET /v1/bundles/{scope}/{name}/versions/{version}", p.version)
	mux.HandleFunc("GET /v1/bundles/{scope}/{name}/versions/{version}/download", p.download)
	mux.HandleFunc("GET /storage/{scope}/{name}/{version}/{os}/{arch}", p.file)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.RLock()
		defer p.mu.RUnlock()
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

// hold publishes a catalogue from the kit.
func (p *published) hold(_ context.Context, c registrytest.Catalogue) error {
	words := strings.NewReplacer("windows", "win32", "amd64", "x64")
	var all []shown
	for _, b := range c.Bundles {
		s := shown{name: b.Name}
		for _, v := range b.Versions {
			files := map[string]string{}
			for _, f := range v.Files {
				files[words.Replace(cmp.Or(f.OS, "any")+"/"+cmp.Or(f.Arch, "any"))] = string(f.Body)
			}
			s.versions = append(s.versions, release{v.Version, files})
		}
		all = append(all, s)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bundles = all
	return nil
}

func (s shown) latest() release { return s.versions[len(s.versions)-1] }

func (s shown) summary() object {
	return object{"name": s.name, "display_name": "", "description": "", "latest_version": s.latest().version, "certification_level": s.level, "downloads": 7}
}

func (p *published) search(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	limit, _ := strconv.Atoi(q.Get("limit"))
	offset, _ := strconv.Atoi(q.Get("offset"))
	all := []object{}
	for _, b := range p.bundles {
		if strings.Contains(b.name, q.Get("q")) {
			all = append(all, b.summary())
		}
	}
	end := min(offset+limit, len(all))
	write(w, object{"bundles": all[min(offset, end):end], "total": len(all), "pagination": object{"limit": limit, "offset": offset, "has_more": end < len(all)}})
}

func (p *published) find(w http.ResponseWriter, r *http.Request) (b shown, v release, ok bool) {
	for _, b = range p.bundles {
		if b.name != r.PathValue("scope")+"/"+r.PathValue("name") {
			continue
		}
		if r.PathValue("version") == "" {
			return b, b.latest(), true
		}
		for _, v := range b.versions {
			if v.version == r.PathValue("version") {
				return b, v, true
			}
		}
	}
	w.WriteHeader(http.StatusNotFound)
	write(w, object{"error": object{"code": "NOT_FOUND", "message": "Bundle not found"}})
	return b, v, false
}

func (p *published) detail(w http.ResponseWriter, r *http.Request) {
	if b, _, ok := p.find(w, r); ok {
		write(w, b.summary())
	}
}

func (p *published) version(w http.ResponseWriter, r *http.Request) {
	b, v, ok := p.find(w, r)
	if !ok {
		return
	}
	var artifacts []object
	for at, body := range v.files {
		goos, arch, _ := strings.Cut(at, "/")
		artifacts = append(artifacts, object{"platform": object{"os": goos, "arch": arch}, "digest": "sha256:" + sum(body), "size": len(body), "download_url": "https://elsewhere.example/" + at})
	}
	write(w, object{"name": b.name, "version": v.version, "artifacts": artifacts})
}

func (p *published) download(w http.ResponseWriter, r *http.Request) {
	b, v, ok := p.find(w, r)
	if !ok {
		return
	}
	if r.Header.Get("Accept") != "application/json" {
		w.WriteHeader(http.StatusNotAcceptable)
		return
	}
	goos, arch := r.URL.Query().Get("os"), r.URL.Query().Get("arch")
	body := v.files[goos+"/"+arch]
	address := fmt.Sprintf("%s/storage/%s/%s/%s/%s?signature=%d", p.URL, b.name, v.version, goos, arch, p.signed.Add(1))
	write(w, object{"url": address, "expires_at": "2026-01-01T00:00:00Z",
		"bundle": object{"name": b.name, "version": v.version, "platform": object{"os": goos, "arch": arch}, "sha256": sum(body), "size": len(body)}})
}

func (p *published) file(w http.ResponseWriter, r *http.Request) {
	_, v, ok := p.find(w, r)
	if !ok {
		return
	}
	_, _ = w.Write([]byte(v.files[r.PathValue("os")+"/"+r.PathValue("arch")]))
}

func write(w http.ResponseWriter, answer object) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

func sum(body string) string {
	s := sha256.Sum256([]byte(body))
	return hex.EncodeToString(s[:])
}

func everywhere(version string) release {
	return release{version, map[string]string{"any/any": strings.Repeat("any"+version, 20_000)}}
}

func (p *published) settings() string { return fmt.Sprintf(`{"url": %q}`, p.URL) }

func open(t *testing.T, p *published) *mpak.Registry {
	t.Helper()
	r := mpak.New()
	if err := r.Configure(t.Context(), plugins.Config{JSON: json.RawMessage(p.settings())}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}
