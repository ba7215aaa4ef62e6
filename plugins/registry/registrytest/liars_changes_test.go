package registrytest_test

import (
	"cmp"
	"context"
	"io"
	"sync"

	"github.com/ropewalk/ropewalk/plugins/registry"
)

// first runs change before the search.
func first(change func(q *registry.Query)) func(*plugin) {
	return func(p *plugin) {
		p.search = func(ctx context.Context, q registry.Query) (registry.Page, error) {
			change(&q)
			return p.find(ctx, q)
		}
	}
}

// asked runs change before Resolve.
func asked(change func(ref *registry.Ref)) func(*plugin) {
	return func(p *plugin) {
		p.resolve = func(ctx context.Context, ref registry.Ref) (registry.Package, error) {
			change(&ref)
			return p.choose(ctx, ref)
		}
	}
}

// names makes the registry compare names in another form.
func names(form func(string) string) func(*plugin) {
	return func(p *plugin) {
		p.named = func(has, asked string) bool { return form(has) == form(asked) }
		p.resolve = func(ctx context.Context, ref registry.Ref) (registry.Package, error) {
			pkg, err := p.choose(ctx, ref)
			pkg.Name = ref.Name
			return pkg, err
		}
	}
}

// versions makes the registry compare versions in another way and return the version that was asked for.
func versions(equal func(has, asked string) bool) func(*plugin) {
	return func(p *plugin) {
		p.versioned = func(has, asked string) bool { return has == asked || equal(has, asked) }
		p.resolve = func(ctx context.Context, ref registry.Ref) (registry.Package, error) {
			pkg, err := p.choose(ctx, ref)
			pkg.Version = cmp.Or(ref.Version, pkg.Version)
			return pkg, err
		}
	}
}

func fits(fits func(b bundle, text string) bool) func(*plugin) {
	return func(p *plugin) {
		p.fits = func(b bundle, text string) bool { return text == "" || text == b.Name || fits(b, text) }
	}
}

func artifacts(same func(artifact, asked string) bool) func(*plugin) {
	return func(p *plugin) { p.same = same }
}

func packs(change func(pkg *registry.Package)) func(*plugin) {
	return func(p *plugin) {
		p.pack = func(_ context.Context, pkg *registry.Package) error { change(pkg); return nil }
	}
}

func statuses(status func(code int) error) func(*plugin) {
	return func(p *plugin) { p.status = status }
}

// bodies changes the downloaded content.
func bodies(change func(ctx context.Context, body io.ReadCloser) io.ReadCloser) func(*plugin) {
	return func(p *plugin) { p.body = change }
}

// pages changes how the results of a search are cut into pages.
func pages(page func(found []bundle, q registry.Query) registry.Page) func(*plugin) {
	return func(p *plugin) { p.page = page }
}

// keeps makes the registry cache the index and read it again only when fresh returns true.
func keeps(fresh func(kept []bundle, err error) bool) func(*plugin) {
	return func(p *plugin) {
		var mu sync.Mutex
		var kept []bundle
		var failed error
		p.index = func(ctx context.Context) ([]bundle, error) {
			mu.Lock()
			defer mu.Unlock()
			if fresh(kept, failed) {
				kept, failed = p.all(ctx)
			}
			return kept, failed
		}
	}
}
