package registrytest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// Subject is a registry to check, and what is known of its bundles. What is not known leaves checks
// out: they are skipped and say so.
type Subject struct {
	Registry registry.Registry
	Known    []Known
	Backend  kit.Backend // takes the backend of Registry away and brings it back; nil when there is no way
}

// Known is a bundle that the registry under test holds.
type Known struct {
	Name     string     `json:"name"`
	Versions []string   `json:"versions"` // the oldest first
	For      []Platform `json:"for"`      // platforms that the latest version is for
	NotFor   []Platform `json:"notFor"`   // platforms that no version is for
	SHA256   string     `json:"sha256"`   // of the latest version for the first platform, "" when unknown
}

// Platform is an operating system and an architecture, as Go names them.
type Platform struct {
	OS   string `json:"os"`
	Arch string `json:"arch"`
}

// ParseKnown reads a JSON list of Known.
func ParseKnown(raw []byte) ([]Known, error) {
	var all []Known
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("read the known bundles: %w", err)
	}
	for i, k := range all {
		if k.Name == "" || len(k.Versions) == 0 {
			return nil, fmt.Errorf("[%d] of the known bundles needs name and versions", i)
		}
	}
	return all, nil
}

// check is a promise that a registry alone can be held to.
func check(name, contract string, run func(context.Context, registry.Registry) error) Check {
	return Check{Name: name, Contract: contract, Run: func(ctx context.Context, s Subject) error { return run(ctx, s.Registry) }}
}

// knowing are promises that need to know what the registry holds.
func knowing() []Check {
	const exact, platform = "The answer names an exact version, never a range: the one that was asked for, or the latest", "What it names is for that platform"
	return []Check{
		{Name: "without a version a known bundle resolves to its newest", Contract: exact, Run: eachKnown(newest)},
		{Name: "each version of a known bundle resolves to itself", Contract: exact, Run: eachKnown(eachVersion)},
		{Name: "a bundle that is not for a platform is not found", Contract: "NOT_FOUND for a bundle that exists, but not in that version or not for that platform", Run: eachKnown(notForPlatform)},
		{Name: "each platform of a bundle gets its own file", Contract: platform, Run: eachKnown(ownFile)},
		{Name: "the digest of a known bundle is the one of its file", Contract: "the file's digest in lower-case hex; empty only where the registry knows none", Run: eachKnown(knownDigest)},
	}
}

// eachKnown runs look on each known bundle; look reports whether there was something to look at.
func eachKnown(look func(context.Context, registry.Registry, Known) (bool, error)) func(context.Context, Subject) error {
	return func(ctx context.Context, s Subject) error {
		looked := false
		for _, k := range s.Known {
			some, err := look(ctx, s.Registry, k)
			if err != nil {
				return fmt.Errorf("%s: %w", k.Name, err)
			}
			looked = looked || some
		}
		if !looked {
			return kit.Skip("the known bundles that were given have nothing of the kind")
		}
		return nil
	}
}

func (k Known) ref(version string, p Platform) registry.Ref {
	r := ref(k.Name, version)
	if p.OS != "" {
		r.OS, r.Arch = p.OS, p.Arch
	}
	return r
}

// first is the platform to ask for where any will do.
func (k Known) first() Platform {
	if len(k.For) > 0 {
		return k.For[0]
	}
	return Platform{}
}

func newest(ctx context.Context, r registry.Registry, k Known) (bool, error) {
	want := k.Versions[len(k.Versions)-1]
	pkg, err := r.Resolve(ctx, k.ref("", k.first()))
	if err == nil && pkg.Version != want {
		err = fmt.Errorf("without a version it must resolve to %s; it resolved to %s", want, pkg.Version)
	}
	return len(k.Versions) > 1, err
}

func eachVersion(ctx context.Context, r registry.Registry, k Known) (bool, error) {
	for _, version := range k.Versions {
		pkg, err := r.Resolve(ctx, k.ref(version, k.first()))
		if err != nil {
			return true, fmt.Errorf("its version %s could not be resolved: %w", version, err)
		}
		if pkg.Version != version {
			return true, fmt.Errorf("asked for the version %s, it resolved to %s", version, pkg.Version)
		}
	}
	return len(k.Versions) > 1, nil
}

func notForPlatform(ctx context.Context, r registry.Registry, k Known) (bool, error) {
	for _, p := range k.NotFor {
		_, err := r.Resolve(ctx, k.ref("", p))
		if err := mustBe(err, plugins.ErrNotFound, fmt.Sprintf("Resolve for %s/%s, which it is not for,", p.OS, p.Arch)); err != nil {
			return true, err
		}
	}
	return len(k.NotFor) > 0, nil
}

func ownFile(ctx context.Context, r registry.Registry, k Known) (bool, error) {
	artifacts := map[string]Platform{}
	for _, p := range k.For {
		pkg, err := r.Resolve(ctx, k.ref("", p))
		if err != nil {
			return true, fmt.Errorf("for %s/%s it could not be resolved: %w", p.OS, p.Arch, err)
		}
		if other, twice := artifacts[pkg.Artifact]; twice {
			return true, fmt.Errorf("for %s/%s and %s/%s it resolved to the same artifact", p.OS, p.Arch, other.OS, other.Arch)
		}
		artifacts[pkg.Artifact] = p
	}
	return len(k.For) > 1, nil
}

func knownDigest(ctx context.Context, r registry.Registry, k Known) (bool, error) {
	if k.SHA256 == "" {
		return false, nil
	}
	pkg, err := r.Resolve(ctx, k.ref("", k.first()))
	if err != nil {
		return true, err
	}
	if pkg.SHA256 != k.SHA256 {
		return true, fmt.Errorf("its sha256 must be %s; Resolve gave %q", k.SHA256, pkg.SHA256)
	}
	sum, _, err := fetch(ctx, r, pkg)
	if err == nil && sum != k.SHA256 {
		err = fmt.Errorf("its bytes must have the sha256 %s; they have %s", k.SHA256, sum)
	}
	return true, err
}

// more are further promises of searching and fetching.
func more() []Check {
	return []Check{
		check("a search for a name does not list every bundle", "a text that is in nothing a bundle says of itself fits none", selects),
		check("a search comes to its last page", "a search comes to its last page", comesToAnEnd),
		check("pages of every size hold the same bundles", "Each bundle is on one page only", pagesOfEverySize),
		check("resolving different bundles at once never mixes them", "Calls come concurrently", resolvesAtOnce),
		check("downloads at once each have their own bytes", "Calls come concurrently", fetchesAtOnce),
		check("an artifact that is an address is not asked for", "an error, and nothing else is read or asked for it", asksNobody),
		check("an artifact whose host was replaced is not asked for", "An artifact is not trusted for having come back", asksNoOtherHost),
	}
}

func selects(ctx context.Context, r registry.Registry) error {
	all, err := entries(ctx, r)
	if err != nil {
		return err
	}
	if len(all) < 4 {
		return kit.Skip("the registry holds fewer than 4 bundles")
	}
	found, err := search(ctx, r, registry.Query{Text: all[0].Name, Limit: registry.MaxLimit})
	if err == nil && len(found.Entries) >= len(all) {
		err = fmt.Errorf("a search for %q lists %d bundles, as an empty one does", all[0].Name, len(found.Entries))
	}
	return err
}

// lastPage is after how many pages a search must have ended that gave nothing new.
const lastPage = 1000

func comesToAnEnd(ctx context.Context, r registry.Registry) error {
	q := registry.Query{Limit: registry.MaxLimit}
	seen := map[string]bool{}
	empty := 0
	for range lastPage {
		page, err := search(ctx, r, q)
		if err != nil {
			return err
		}
		if len(page.Entries) == 0 {
			empty++
		}
		switch q.Cursor = page.NextCursor; {
		case q.Cursor == "":
			return nil
		case seen[q.Cursor]:
			return fmt.Errorf("the cursor %q came twice", q.Cursor)
		case empty > 10:
			return errors.New("more than 10 pages were empty, and there was always a next one")
		}
		seen[q.Cursor] = true
		if len(seen) > 5 && empty == 0 { // a large registry: that it goes on is enough
			return nil
		}
	}
	return fmt.Errorf("after %d pages there was a next one", lastPage)
}

func pagesOfEverySize(ctx context.Context, r registry.Registry) error {
	large, err := search(ctx, r, registry.Query{Limit: registry.MaxLimit})
	if err != nil {
		return err
	}
	want := min(len(large.Entries), 3*sample)
	if want < 4 {
		return kit.Skip("the registry holds fewer than 4 bundles")
	}
	for _, size := range []int{1, 3, 7, 19} {
		names, _, err := readPages(ctx, r, size, want)
		if err != nil {
			return err
		}
		for i, e := range large.Entries[:want] {
			if i >= len(names) || names[i] != e.Name {
				return fmt.Errorf("pages of %d must hold the same bundles in the same order as one of %d; they differ at %d", size, registry.MaxLimit, i)
			}
		}
	}
	return nil
}

func resolvesAtOnce(ctx context.Context, r registry.Registry) error {
	found, err := resolved(ctx, r)
	if err != nil {
		return err
	}
	if len(found) < 2 {
		return kit.Skip("fewer than 2 bundles resolve for this platform")
	}
	errs := make([]error, 24)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			want := found[i%len(found)].pkg
			got, err := r.Resolve(ctx, ref(want.Name, want.Version))
			if err == nil && !reflect.DeepEqual(got, want) {
				err = fmt.Errorf("of calls at once, Resolve of %s gave %+v", want.Name, got)
			}
			errs[i] = err
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func fetchesAtOnce(ctx context.Context, r registry.Registry) error {
	var pkgs []registry.Package
	if err := files(ctx, r, func(p registry.Package) error {
		pkgs = append(pkgs, p)
		return nil
	}); err != nil {
		return err
	}
	if len(pkgs) < 2 {
		return kit.Skip("fewer than 2 bundles can be fetched")
	}
	sums := make([]string, len(pkgs))
	for i, p := range pkgs {
		var err error
		if sums[i], _, err = fetch(ctx, r, p); err != nil {
			return err
		}
	}
	errs := make([]error, 6)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			sum, _, err := fetch(ctx, r, pkgs[i%len(pkgs)])
			if err == nil && sum != sums[i%len(pkgs)] {
				err = errors.New("of downloads at once, one had other bytes than alone")
			}
			errs[i] = err
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// canary is a server on loopback that nobody must ask.
type canary struct {
	server *http.Server
	host   string
	asked  atomic.Int64
}

func newCanary() (*canary, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it answers at once
	if err != nil {
		return nil, err
	}
	c := &canary{host: listener.Addr().String()}
	c.server = &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c.asked.Add(1)
		_, _ = w.Write([]byte("PK"))
	})}
	go func() { _ = c.server.Serve(listener) }()
	return c, nil
}

// follow fetches an artifact and reports whether anybody asked the canary.
func (c *canary) follow(ctx context.Context, r registry.Registry, pkg registry.Package) error {
	before := c.asked.Load()
	if body, err := r.Fetch(ctx, pkg); err == nil {
		_, _ = body.Read(make([]byte, 1))
		_ = body.Close()
	}
	if c.asked.Load() > before {
		return fmt.Errorf("the artifact %q, which Resolve never gave, was asked for", pkg.Artifact)
	}
	return nil
}

func asksNobody(ctx context.Context, r registry.Registry) error {
	c, err := newCanary()
	if err != nil {
		return err
	}
	defer func() { _ = c.server.Close() }()
	for _, artifact := range []string{"http://" + c.host + "/x.mcpb", "//" + c.host + "/x.mcpb", "http://user@" + c.host + "/x.mcpb", c.host + "/x.mcpb", "@" + c.host + "/x.mcpb"} {
		if err := c.follow(ctx, r, registry.Package{Name: "x", Version: "1.0.0", Kind: registry.KindMCPB, Artifact: artifact}); err != nil {
			return err
		}
	}
	return nil
}

func asksNoOtherHost(ctx context.Context, r registry.Registry) error {
	c, err := newCanary()
	if err != nil {
		return err
	}
	defer func() { _ = c.server.Close() }()
	looked := false
	err = files(ctx, r, func(p registry.Package) error {
		address, err := url.Parse(p.Artifact)
		if err != nil || address.Host == "" {
			return nil //nolint:nilerr // an artifact need not be an address
		}
		looked = true
		address.Scheme, address.Host = "http", c.host
		p.Artifact = address.String()
		return c.follow(ctx, r, p)
	})
	if err == nil && !looked {
		return kit.Skip("the artifacts of this registry are no addresses")
	}
	return err
}
