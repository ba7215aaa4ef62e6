package registrytest

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// sample is how many bundles of a registry the kit looks at.
const sample = 20

// exact is a version that names one thing and no range of them.
var exact = regexp.MustCompile(`^v?[0-9A-Za-z][0-9A-Za-z.+_!~-]*$`)

func search(ctx context.Context, r registry.Registry, q registry.Query) (registry.Page, error) {
	page, err := r.Search(ctx, q)
	if err != nil {
		return page, fmt.Errorf("Search(%+v) failed: %w", q, err)
	}
	return page, nil
}

// entries are the first bundles of an empty search.
func entries(ctx context.Context, r registry.Registry) ([]registry.Entry, error) {
	page, err := search(ctx, r, registry.Query{Limit: sample})
	if err == nil && len(page.Entries) == 0 {
		err = errors.New("the registry under test must hold at least one bundle; an empty search found none")
	}
	return page.Entries, err
}

func ref(name, version string) registry.Ref {
	return registry.Ref{Name: name, Version: version, OS: runtime.GOOS, Arch: runtime.GOARCH}
}

// resolved are the packages of the first bundles, each with the entry that a search gave. Bundles
// that are not for this platform are passed over.
func resolved(ctx context.Context, r registry.Registry) (found []pair, err error) {
	all, err := entries(ctx, r)
	if err != nil {
		return nil, err
	}
	for _, e := range all {
		pkg, err := r.Resolve(ctx, ref(e.Name, ""))
		switch {
		case errors.Is(err, plugins.ErrNotFound):
		case err != nil:
			return nil, fmt.Errorf("what a search found, %s, could not be resolved: %w", e.Name, err)
		default:
			found = append(found, pair{e, pkg})
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("at least one of the %d bundles that a search found must resolve; none did for %s/%s", len(all), runtime.GOOS, runtime.GOARCH)
	}
	return found, nil
}

type pair struct {
	entry registry.Entry
	pkg   registry.Package
}

// each runs look on every resolved package.
func each(ctx context.Context, r registry.Registry, look func(registry.Package) error) error {
	found, err := resolved(ctx, r)
	for _, p := range found {
		if err = look(p.pkg); err != nil {
			return fmt.Errorf("%s: %w", p.pkg.Name, err)
		}
	}
	return err
}

// mustBe asks for one of the errors of the contract.
func mustBe(got, want error, what string) error {
	if !errors.Is(got, want) {
		return fmt.Errorf("%s must return the error %q of the contract; it returned %q", what, message(want), message(got))
	}
	return nil
}

func message(err error) string {
	if err == nil {
		return "none"
	}
	return err.Error()
}
