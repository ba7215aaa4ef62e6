package registrytest_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
	"github.com/ropewalk/ropewalk/plugins/registry"
	"github.com/ropewalk/ropewalk/plugins/registry/registrytest"
)

// catalog is an honest registry with one more bundle, which has versions and platforms, and whose
// artifacts are addresses.
type catalog struct {
	*fakeRegistry
}

const many = "io.example/many"

func newCatalog() *catalog { return &catalog{fakeRegistry: newFakeRegistry()} }

func (c *catalog) file(version, platform string) []byte {
	return bytes.Repeat([]byte(many+version+platform), 4000)
}

func (c *catalog) Resolve(ctx context.Context, ref registry.Ref) (registry.Package, error) {
	if ref.Name != many {
		pkg, err := c.fakeRegistry.Resolve(ctx, ref)
		if pkg.Kind == registry.KindMCPB {
			pkg.Artifact = "https://files.example/" + pkg.Artifact
		}
		return pkg, err
	}
	version := ref.Version
	if version == "" {
		version = "2.0.0"
	}
	if !slices.Contains([]string{"1.0.0", "1.9.0", "2.0.0"}, version) || ref.OS != "linux" || !slices.Contains([]string{"amd64", "arm64"}, ref.Arch) {
		return registry.Package{}, plugins.ErrNotFound
	}
	body := c.file(version, ref.OS+ref.Arch)
	sum := sha256.Sum256(body)
	return registry.Package{Name: many, Version: version, Kind: registry.KindMCPB, Artifact: "https://files.example/many/" + version + "/" + ref.OS + ref.Arch, SHA256: hex.EncodeToString(sum[:]), Size: int64(len(body))}, nil
}

func (c *catalog) Fetch(ctx context.Context, pkg registry.Package) (io.ReadCloser, error) {
	if err := cmp.Or(registry.CheckFetch(pkg), ctx.Err()); err != nil {
		return nil, err
	}
	rest, ok := strings.CutPrefix(pkg.Artifact, "https://files.example/")
	if !ok && pkg.Kind == registry.KindMCPB {
		return nil, plugins.ErrNotFound
	}
	if parts := strings.Split(rest, "/"); parts[0] == "many" && len(parts) == 3 {
		return io.NopCloser(bytes.NewReader(c.file(parts[1], parts[2]))), nil
	}
	pkg.Artifact = rest
	return c.fakeRegistry.Fetch(ctx, pkg)
}

func (c *catalog) known() []registrytest.Known {
	sum := sha256.Sum256(c.file("2.0.0", "linuxamd64"))
	return []registrytest.Known{{Name: many, Versions: []string{"1.0.0", "1.9.0", "2.0.0"},
		For: []registrytest.Platform{{OS: "linux", Arch: "amd64"}, {OS: "linux", Arch: "arm64"}}, NotFor: []registrytest.Platform{{OS: "windows", Arch: "amd64"}, {OS: "linux", Arch: "mips"}},
		SHA256: hex.EncodeToString(sum[:])}}
}

// altered is a catalog with a method replaced.
type altered struct {
	*catalog
	query   func(registry.Query) registry.Query
	refuse  func(registry.Query) error
	search  func(*catalog, registry.Query, registry.Page) registry.Page
	ask     func(registry.Ref) registry.Ref
	askIn   func(*catalog, registry.Ref) registry.Ref
	resolve func(*catalog, registry.Ref, registry.Package) registry.Package
	fetch   func(*catalog, registry.Package) (io.ReadCloser, error)
	late    error // of a Resolve whose deadline has passed

	lateFetch error // of a Fetch whose deadline has passed
}

func (a altered) Search(ctx context.Context, q registry.Query) (registry.Page, error) {
	if a.query != nil {
		q = a.query(q)
	}
	if a.refuse != nil && a.refuse(q) != nil {
		return registry.Page{}, a.refuse(q)
	}
	page, err := a.catalog.Search(ctx, q)
	if err == nil && a.search != nil {
		page = a.search(a.catalog, q, page)
	}
	return page, err
}

func (a altered) Resolve(ctx context.Context, ref registry.Ref) (registry.Package, error) {
	if a.late != nil && ctx.Err() != nil {
		return registry.Package{}, a.late
	}
	if a.ask != nil {
		ref = a.ask(ref)
	}
	if a.askIn != nil {
		ref = a.askIn(a.catalog, ref)
	}
	pkg, err := a.catalog.Resolve(ctx, ref)
	if err == nil && a.resolve != nil {
		pkg = a.resolve(a.catalog, ref, pkg)
	}
	return pkg, err
}

func (a altered) Fetch(ctx context.Context, pkg registry.Package) (io.ReadCloser, error) {
	if a.lateFetch != nil && ctx.Err() != nil {
		return nil, a.lateFetch
	}
	if a.fetch != nil {
		if body, err := a.fetch(a.catalog, pkg); body != nil || err != nil {
			return body, err
		}
	}
	return a.catalog.Fetch(ctx, pkg)
}

func get(address string) (io.ReadCloser, error) {
	resp, err := http.Get(address) //nolint:gosec // the lie
	if err != nil {
		return nil, nil //nolint:nilnil,nilerr // then it asks honestly
	}
	return resp.Body, nil
}

func newLies() map[string]wrongAbout {
	all := otherLies()
	maps.Copy(all, pagingLies())
	maps.Copy(all, nearLies())
	maps.Copy(all, edgeLies())
	maps.Copy(all, textLies())
	return all
}

func otherLies() map[string]wrongAbout {
	type l = wrongAbout
	var last registry.Package
	var lastBody []byte
	var mu sync.Mutex
	empty := 0
	return map[string]l{
		"lists everything that is not nothing": {"a search for a name does not list every bundle", altered{search: func(c *catalog, q registry.Query, page registry.Page) registry.Page {
			if q.Text != "" && len(page.Entries) > 0 {
				page, _ = c.Search(context.Background(), registry.Query{Limit: q.Limit})
			}
			return page
		}}},
		"always has a next page": {"a search comes to its last page", altered{search: func(_ *catalog, _ registry.Query, page registry.Page) registry.Page {
			empty++
			if page.NextCursor == "" {
				page.NextCursor = fmt.Sprint(1000 + empty)
			}
			return page
		}}},
		"repeats a cursor": {"a search comes to its last page", altered{search: func(_ *catalog, _ registry.Query, page registry.Page) registry.Page {
			page.NextCursor = "0"
			return page
		}}},
		"loses a bundle at the end of pages of 7": {"pages of every size hold the same bundles", altered{search: func(_ *catalog, q registry.Query, page registry.Page) registry.Page {
			if q.Limit == 7 && len(page.Entries) == 7 {
				page.Entries = page.Entries[:6]
			}
			return page
		}}},
		"answers with the bundle it resolved last": {"resolving different bundles at once never mixes them", altered{resolve: func(_ *catalog, _ registry.Ref, pkg registry.Package) registry.Package {
			mu.Lock()
			last = pkg
			mu.Unlock()
			time.Sleep(2 * time.Millisecond) //nolint:forbidigo // of the fake clock: until every other call has come this far
			mu.Lock()
			defer mu.Unlock()
			return last
		}}},
		"shares one buffer between downloads": {"downloads at once each have their own bytes", altered{fetch: func(c *catalog, pkg registry.Package) (io.ReadCloser, error) {
			body, err := c.Fetch(context.Background(), pkg)
			if err != nil {
				return nil, err
			}
			raw, _ := io.ReadAll(body)
			mu.Lock()
			lastBody = raw
			mu.Unlock()
			time.Sleep(5 * time.Millisecond) //nolint:forbidigo // of the fake clock: until every other call has come this far
			mu.Lock()
			defer mu.Unlock()
			return io.NopCloser(bytes.NewReader(lastBody)), nil
		}}},
		"asks for whatever address an artifact is": {"an artifact that is an address is not asked for", altered{fetch: func(_ *catalog, pkg registry.Package) (io.ReadCloser, error) {
			if strings.HasPrefix(pkg.Artifact, "http://") {
				return get(pkg.Artifact)
			}
			return nil, nil //nolint:nilnil // then it asks honestly
		}}},
		"trusts the host of an artifact": {"an artifact whose host was replaced is not asked for", altered{fetch: func(_ *catalog, pkg registry.Package) (io.ReadCloser, error) {
			if strings.HasPrefix(pkg.Artifact, "http://") && strings.Contains(pkg.Artifact, "@") {
				return get(pkg.Artifact)
			}
			return nil, nil //nolint:nilnil // then it asks honestly
		}}},
		"answers not found when its deadline has passed": {"a call whose deadline has passed returns an error", altered{late: plugins.ErrNotFound}},
		"takes the oldest version for the newest": {"without a version a known bundle resolves to its newest", altered{ask: func(r registry.Ref) registry.Ref {
			if r.Name == many && r.Version == "" {
				r.Version = "1.0.0"
			}
			return r
		}}},
		"compares versions as text": {"without a version a known bundle resolves to its newest", altered{ask: func(r registry.Ref) registry.Ref {
			if r.Name == many && r.Version == "" {
				r.Version = "1.9.0"
			}
			return r
		}}},
		"answers with the newest version whatever is asked for": {"each version of a known bundle resolves to itself", altered{ask: func(r registry.Ref) registry.Ref {
			if r.Name == many {
				r.Version = "2.0.0"
			}
			return r
		}}},
		"gives every platform the file for linux": {"a bundle that is not for a platform is not found", altered{ask: func(r registry.Ref) registry.Ref { r.OS = "linux"; return r }}},
		"does not look at the architecture": {"a bundle that is not for a platform is not found", altered{ask: func(r registry.Ref) registry.Ref {
			if r.Arch == "mips" {
				r.Arch = "amd64"
			}
			return r
		}}},
		"gives every architecture the file for amd64": {"each platform of a bundle gets its own file", altered{ask: func(r registry.Ref) registry.Ref {
			if r.Arch == "arm64" {
				r.Arch = "amd64"
			}
			return r
		}}},
		"leaves digests out": {"the digest of a known bundle is the one of its file", altered{resolve: func(_ *catalog, _ registry.Ref, pkg registry.Package) registry.Package { pkg.SHA256 = ""; return pkg }}},
		"serves another file with that file's digest": {"the digest of a known bundle is the one of its file", altered{resolve: func(c *catalog, _ registry.Ref, pkg registry.Package) registry.Package {
			if pkg.Name == many {
				pkg.Artifact = "https://files.example/many/1.0.0/linuxamd64"
				sum := sha256.Sum256(c.file("1.0.0", "linuxamd64"))
				pkg.SHA256 = hex.EncodeToString(sum[:])
			}
			return pkg
		}}},
	}
}

func TestEachLieIsCaughtByItsCheck(t *testing.T) {
	for what, l := range newLies() {
		t.Run(what, func(t *testing.T) {
			catch := func(t *testing.T) {
				l.lie.catalog = newCatalog()
				s := registrytest.Subject{Registry: l.lie, Known: l.lie.known()}
				check := slices.DeleteFunc(registrytest.Checks(), func(c registrytest.Check) bool { return c.Name != l.check })
				if failed := kit.Failed(kit.Run(t.Context(), check, s)); len(failed) != 1 {
					t.Errorf("not caught by the check %q", l.check)
				}
			}
			if strings.Contains(l.check, "not asked for") { // over the network, which a fake clock does not wait for
				catch(t)
				return
			}
			synctest.Test(t, catch)
		})
	}
}

func TestARegistryThatIsWrongAboutItsBackendIsCaught(t *testing.T) {
	for what, l := range outageLies() {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l.lie.catalog, l.lie.backend = newCatalog(), &backend{}
				s := registrytest.Subject{Registry: l.lie, Known: l.lie.known(), Backend: l.lie.backend}
				check := slices.DeleteFunc(registrytest.Checks(), func(c registrytest.Check) bool { return c.Name != l.check })
				if failed := kit.Failed(kit.Run(t.Context(), check, s)); len(failed) != 1 {
					t.Errorf("not caught by the check %q", l.check)
				}
				time.Sleep(time.Minute) //nolint:forbidigo // the bubble's clock: what a lie does in the background ends
			})
		})
	}
}

func TestARegistryThatSendsLargePiecesIsCaught(t *testing.T) {
	for what, l := range wireLies() {
		t.Run(what, func(t *testing.T) {
			check := slices.DeleteFunc(registrytest.Checks(), func(c registrytest.Check) bool { return c.Name != l.check })
			s := registrytest.Subject{Registry: registry.Client(plugintest.Serve(t, l.lie.plugin()))}
			if failed := kit.Failed(kit.Run(t.Context(), check, s)); len(failed) != 1 {
				t.Errorf("not caught by the check %q", l.check)
			}
		})
	}
}

func TestAnHonestCatalogIsNotCaughtAndNothingIsSkipped(t *testing.T) {
	r := remote{catalog: newCatalog(), backend: &backend{}}
	for _, r := range kit.Run(t.Context(), registrytest.Checks(), registrytest.Subject{Registry: r, Known: r.known(), Backend: r.backend}) {
		if r.Err != nil || r.Skipped != "" && r.Name != "a piece of a download has at most 1 MiB" { // which is about connections
			t.Errorf("%s: %v %s", r.Name, r.Err, r.Skipped)
		}
	}
}

func TestAnHonestServerIsNotCaughtByTheChecksOfItsMessages(t *testing.T) {
	s := registrytest.Subject{Registry: registry.Client(plugintest.Serve(t, wire{piece: 1 << 20}.plugin()))}
	for _, r := range kit.Run(t.Context(), registrytest.Checks(), s) {
		if r.Err != nil || r.Skipped != "" && r.Name == "a piece of a download has at most 1 MiB" {
			t.Errorf("%s: %v %s", r.Name, r.Err, r.Skipped)
		}
	}
}

func TestEveryCheckHasALieAndIsAPromiseOfTheContract(t *testing.T) {
	var proven []string
	for _, l := range newLies() {
		proven = append(proven, l.check)
	}
	for _, l := range liars() {
		proven = append(proven, l.lie)
	}
	for _, l := range outageLies() {
		proven = append(proven, l.check)
	}
	for _, l := range wireLies() {
		proven = append(proven, l.check)
	}
	for _, check := range registrytest.Checks() {
		if !slices.Contains(proven, check.Name) {
			t.Errorf("no lie proves the check %q", check.Name)
		}
	}
	plugintest.InContract(t, "registry", registrytest.Checks())
}
