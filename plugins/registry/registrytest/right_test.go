package registrytest_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Masterminds/semver/v3"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/registry"
	"github.com/ropewalk/ropewalk/plugins/registry/registrytest"
)

type (
	bundle  = registrytest.Bundle
	version = registrytest.Version
	file    = registrytest.File
)

// depot is a backend: an index of all bundles, and files.
type depot struct {
	mu    sync.Mutex
	index []byte
	files map[string][]byte
}

func (d *depot) publish(_ context.Context, c registrytest.Catalogue) error {
	index, err := json.Marshal(c)
	if err != nil {
		return err
	}
	files := map[string][]byte{}
	for _, b := range c.Bundles {
		for _, v := range b.Versions {
			for _, f := range v.Files {
				files["/files/"+f.Path] = f.Body
			}
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.index, d.files = index, files
	return nil
}

func (d *depot) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	body, ok := d.files[r.URL.Path]
	if r.URL.Path == "/index" {
		body, ok = d.index, true
	}
	d.mu.Unlock()
	if !ok {
		http.Error(w, `{"error": "not found"}`, http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	_, _ = w.Write(body)
}

// plugin is a correct registry. Liars change one of its functions.
type plugin struct {
	base   string
	client *http.Client

	index     func(ctx context.Context) ([]bundle, error)
	get       func(ctx context.Context, path string) (io.ReadCloser, error)
	status    func(code int) error
	lost      func(error) error // the error for a backend that does not respond
	check     func(registry.Query) error
	named     func(has, asked string) bool
	versioned func(has, asked string) bool
	runs      func(f file, os, arch string) bool
	compare   func(a, b version) int
	fits      func(b bundle, text string) bool
	page      func(found []bundle, q registry.Query) registry.Page
	entry     func(bundle) registry.Entry
	pack      func(ctx context.Context, pkg *registry.Package) error // the last step before the package is returned
	same      func(artifact, asked string) bool
	body      func(ctx context.Context, body io.ReadCloser) io.ReadCloser
	resolve   func(context.Context, registry.Ref) (registry.Package, error)
	fetch     func(context.Context, registry.Package) (io.ReadCloser, error)
	search    func(context.Context, registry.Query) (registry.Page, error)
}

func newPlugin(base string) *plugin {
	p := &plugin{
		base: base, client: &http.Client{Transport: &http.Transport{}},
		status: func(code int) error {
			if code == http.StatusNotFound {
				return plugins.ErrNotFound
			}
			return fmt.Errorf("%w: the backend answered %d", plugins.ErrUnavailable, code)
		},
		lost:      plugins.Unavailable,
		check:     registry.CheckQuery,
		named:     func(has, asked string) bool { return has == asked },
		versioned: func(has, asked string) bool { return has == asked },
		runs: func(f file, os, arch string) bool {
			return (f.OS == "" || f.OS == os) && (f.Arch == "" || f.Arch == arch)
		},
		compare: bySemver,
		fits: func(b bundle, text string) bool {
			return strings.Contains(strings.ToLower(b.Name+"\n"+b.Title+"\n"+b.Description), strings.ToLower(text))
		},
		page: pageByName,
		entry: func(b bundle) registry.Entry {
			return registry.Entry{Name: b.Name, Title: b.Title, Description: b.Description, Version: b.Versions[0].Version}
		},
		pack: func(context.Context, *registry.Package) error { return nil },
		same: func(artifact, asked string) bool { return artifact == asked },
		body: func(_ context.Context, body io.ReadCloser) io.ReadCloser { return body },
	}
	p.get, p.index, p.search, p.resolve, p.fetch = p.request, p.all, p.find, p.choose, p.open
	return p
}

func (p *plugin) Search(ctx context.Context, q registry.Query) (registry.Page, error) {
	return p.search(ctx, q)
}
func (p *plugin) Resolve(ctx context.Context, ref registry.Ref) (registry.Package, error) {
	return p.resolve(ctx, ref)
}
func (p *plugin) Fetch(ctx context.Context, pkg registry.Package) (io.ReadCloser, error) {
	return p.fetch(ctx, pkg)
}

// bySemver orders the newest version first, and releases before prereleases.
func bySemver(a, b version) int {
	va, vb := semver.MustParse(a.Version), semver.MustParse(b.Version)
	if (va.Prerelease() == "") != (vb.Prerelease() == "") {
		return cmp.Compare(va.Prerelease(), vb.Prerelease())
	}
	return vb.Compare(va)
}

func (p *plugin) request(ctx context.Context, path string) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.base+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := p.client.Do(r)
	if err != nil {
		return nil, p.lost(err)
	}
	if answer.StatusCode != http.StatusOK {
		if err := p.status(answer.StatusCode); err != nil {
			_ = answer.Body.Close()
			return nil, err
		}
	}
	return answer.Body, nil
}

// all reads the index, with the newest version of each bundle first.
func (p *plugin) all(ctx context.Context) ([]bundle, error) {
	body, err := p.get(ctx, "/index")
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	var c registrytest.Catalogue
	if raw, err := io.ReadAll(body); err != nil {
		return nil, p.lost(err)
	} else if err := json.Unmarshal(raw, &c); err != nil {
		return nil, p.lost(err)
	}
	slices.SortFunc(c.Bundles, func(a, b bundle) int { return strings.Compare(a.Name, b.Name) })
	for _, b := range c.Bundles {
		slices.SortStableFunc(b.Versions, p.compare)
	}
	return c.Bundles, nil
}

func (p *plugin) find(ctx context.Context, q registry.Query) (registry.Page, error) {
	if err := p.check(q); err != nil {
		return registry.Page{}, err
	}
	all, err := p.index(ctx)
	if err != nil {
		return registry.Page{}, err
	}
	q.Limit = cmp.Or(q.Limit, registry.DefaultLimit)
	page := p.page(slices.DeleteFunc(slices.Clone(all), func(b bundle) bool { return !p.fits(b, q.Text) }), q)
	for i, e := range page.Entries {
		at := slices.IndexFunc(all, func(b bundle) bool { return b.Name == e.Name })
		page.Entries[i] = p.entry(all[at])
	}
	return page, nil
}

// pageByName uses the last name of a page as the cursor.
func pageByName(found []bundle, q registry.Query) (page registry.Page) {
	for _, b := range found {
		if b.Name <= q.Cursor {
			continue
		}
		if len(page.Entries) == q.Limit {
			page.NextCursor = page.Entries[q.Limit-1].Name
			break
		}
		page.Entries = append(page.Entries, registry.Entry{Name: b.Name})
	}
	return page
}

func (p *plugin) choose(ctx context.Context, ref registry.Ref) (registry.Package, error) {
	if err := registry.CheckRef(ref); err != nil {
		return registry.Package{}, err
	}
	all, err := p.index(ctx)
	if err != nil {
		return registry.Package{}, err
	}
	for _, b := range all {
		for _, v := range b.Versions {
			for _, f := range v.Files {
				if !p.named(b.Name, ref.Name) || ref.Version != "" && !p.versioned(v.Version, ref.Version) || !p.runs(f, ref.OS, ref.Arch) {
					continue
				}
				pkg := registry.Package{Name: b.Name, Version: v.Version, Title: b.Title, Description: b.Description, Kind: registry.KindMCPB, Artifact: f.Path, SHA256: f.SHA256, Size: f.Size}
				return pkg, p.pack(ctx, &pkg)
			}
		}
	}
	return registry.Package{}, plugins.ErrNotFound
}

func (p *plugin) open(ctx context.Context, pkg registry.Package) (io.ReadCloser, error) {
	if err := registry.CheckFetch(pkg); err != nil {
		return nil, err
	}
	all, err := p.index(ctx)
	if err != nil {
		return nil, err
	}
	for _, b := range all {
		for _, v := range b.Versions {
			for _, f := range v.Files {
				if p.same(f.Path, pkg.Artifact) {
					body, err := p.get(ctx, path.Join("/files", f.Path))
					if err != nil {
						return nil, err
					}
					return p.body(ctx, body), nil
				}
			}
		}
	}
	return nil, fmt.Errorf("%w: the artifact did not come from this registry", plugins.ErrInvalid)
}

// open starts a plugin with its own backend, changed by a liar.
func open(t *testing.T, change func(*plugin)) registrytest.Subject {
	t.Helper()
	d := &depot{}
	server := httptest.NewServer(d)
	t.Cleanup(server.Close)
	front, err := registrytest.NewFront(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(front.Close)
	p := newPlugin("http://" + front.Address())
	t.Cleanup(p.client.CloseIdleConnections)
	change(p)
	return registrytest.Subject{Registry: p, Publish: d.publish, Platforms: registrytest.Architectures, Backend: front, Age: 2 * time.Second}
}

// whole reads a body to its end.
func whole(body io.ReadCloser) *bytes.Reader {
	defer func() { _ = body.Close() }()
	raw, _ := io.ReadAll(body) // a liar does not notice that a body was cut short
	return bytes.NewReader(raw)
}
