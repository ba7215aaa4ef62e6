package registrytest_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
	"github.com/ropewalk/ropewalk/plugins/registry"
	"github.com/ropewalk/ropewalk/plugins/registry/registrytest"
)

// liar is a registry that breaks one promise: the one that lie names, the check that must catch it.
// No other check may, but those of also, which fall with it for the reason given.
type liar struct {
	lie      string
	registry registry.Registry
	also     []string
}

func liars() []liar {
	return slices.Concat(searchLiars(), resolveLiars(), packageLiars(), fetchLiars())
}

func searchLiars() []liar {
	return []liar{
		{lie: "an empty search finds at least one bundle", also: names(), // the kit has nothing to look at
			registry: asks(func(q *registry.Query) {
				if q.Text == "" {
					q.Text = "qqzzxxjjwwkk"
				}
			})},
		{lie: "an entry has a name, an exact version, and a trust score of 0 to 100", registry: pages(func(_ registry.Query, page *registry.Page) {
			for i := range page.Entries {
				page.Entries[i].TrustScore = 101
			}
		})},
		{lie: "a page holds no more entries than were asked for", registry: asks(func(q *registry.Query) {
			if q.Limit == 1 {
				q.Limit = 2
			}
		})},
		{lie: "a page holds 20 entries at most when no limit was given", registry: asks(func(q *registry.Query) {
			if q.Limit == 0 {
				q.Limit = 25
			}
		})},
		{lie: "a limit out of bounds is invalid", registry: asks(func(q *registry.Query) { q.Limit = min(max(q.Limit, 0), registry.MaxLimit) })},
		{lie: "the pages of a search hold no bundle twice", also: []string{"the pages of a search hold what one large page holds"}, // twice pushes out another
			registry: pages(func(q registry.Query, page *registry.Page) {
				if q.Limit == 2 && q.Cursor != "" && len(page.Entries) > 0 {
					page.Entries[0].Name = "io.example/a-first"
				}
			})},
		{lie: "the pages of a search hold what one large page holds", registry: pages(func(q registry.Query, page *registry.Page) {
			if q.Limit == 2 && len(page.Entries) > 1 {
				page.Entries = page.Entries[:1]
			}
		})},
		{lie: "a search for a bundle's name finds it", registry: asks(func(q *registry.Query) {
			if strings.HasPrefix(q.Text, "io.example/") {
				q.Text = "f-more-19"
			}
		})},
		{lie: "a search that fits nothing is an empty last page", registry: pages(func(_ registry.Query, page *registry.Page) {
			if len(page.Entries) == 0 {
				page.NextCursor = "more"
			}
		})},
	}
}

func resolveLiars() []liar {
	return []liar{
		{lie: "what a search found can be resolved", also: names(), // the kit has nothing to look at
			registry: answers(func(ref registry.Ref) bool { return ref.Name != "" }, plugins.ErrNotFound)},
		{lie: "a bundle that is not there is not found", registry: answers(func(ref registry.Ref) bool { return strings.Contains(ref.Name, "qqzz") }, plugins.ErrInvalid)},
		{lie: "a version that is not there is not found", registry: bent{fakeRegistry: newFakeRegistry(), resolve: fallsBack}},
		{lie: "a name that leads elsewhere is not found", registry: answers(func(ref registry.Ref) bool { return strings.Contains(ref.Name, "..") }, plugins.ErrUnavailable)},
		{lie: "an empty name is invalid", registry: answers(func(ref registry.Ref) bool { return ref.Name == "" }, plugins.ErrNotFound)},
		{lie: "a package has the name that was asked for", registry: bent{fakeRegistry: newFakeRegistry(), resolve: namesLoudly}},
		{lie: "the latest version is the one that the search named", registry: bent{fakeRegistry: newFakeRegistry(), resolve: resolvesOlder}},
		{lie: "a package has the version that was asked for", registry: gives(func(ref registry.Ref, pkg *registry.Package) {
			if ref.Version != "" {
				pkg.Version = "^" + ref.Version
			}
		})},
		{lie: "the same name and version resolve to the same package", registry: gives(func(ref registry.Ref, pkg *registry.Package) {
			pkg.Description = ref.Version
		})},
		{lie: "a call whose deadline has passed returns an error", registry: bent{fakeRegistry: newFakeRegistry(), resolve: sleepsThroughDeadlines}},
		{lie: "calls may come concurrently", registry: oneAtATime()},
	}
}

func packageLiars() []liar {
	changed := func(change func(*registry.Package)) registry.Registry {
		return gives(func(_ registry.Ref, pkg *registry.Package) { change(pkg) })
	}
	return []liar{
		{lie: "a package is of a known kind", registry: changed(func(pkg *registry.Package) {
			if pkg.Kind == registry.KindPyPI {
				pkg.Kind = "oci"
			}
		})},
		{lie: "a package has what its kind needs", registry: changed(func(pkg *registry.Package) { pkg.IdentifierVersion = "" })},
		{lie: "a package has a trust score of 0 to 100", registry: changed(func(pkg *registry.Package) { pkg.TrustScore = -1 })},
		{lie: "a digest is a sha256 in lower-case hex", registry: changed(func(pkg *registry.Package) { pkg.SHA256 = strings.ToUpper(pkg.SHA256) })},
		{lie: "a package's variables have names, each its own", registry: changed(func(pkg *registry.Package) {
			pkg.Variables = append(slices.Clone(pkg.Variables), pkg.Variables...)
		})},
		{lie: "a default is one of its variable's choices", registry: changed(func(pkg *registry.Package) {
			pkg.Variables = []registry.Variable{{Name: "region", Default: "mars", Choices: []string{"eu"}}}
		})},
	}
}

func fetchLiars() []liar {
	return []liar{
		{lie: "a bundle's bytes have the size and the sha256 that were promised", registry: gives(func(_ registry.Ref, pkg *registry.Package) { pkg.Size++ })},
		{lie: "a bundle can be fetched again, byte for byte", registry: growing()},
		{lie: "a package of another kind cannot be fetched", registry: bent{fakeRegistry: newFakeRegistry(), fetch: givesAnyKind}},
		{lie: "an artifact that leads elsewhere is an error", registry: bent{fakeRegistry: newFakeRegistry(), fetch: givesAnything}},
		{lie: "a download can be given up", registry: bent{fakeRegistry: newFakeRegistry(), fetch: mustBeRead}},
	}
}

func names() []string {
	var all []string
	for _, check := range registrytest.Checks() {
		all = append(all, check.Name)
	}
	return all
}

func TestEachLiarIsCaughtByItsCheckAlone(t *testing.T) {
	for _, liar := range liars() {
		t.Run(liar.lie, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				caught := kit.Failed(kit.Run(t.Context(), basic(), registrytest.Subject{Registry: liar.registry}))
				time.Sleep(2 * time.Minute) //nolint:forbidigo // of the fake clock: until a liar that sleeps is awake
				if !slices.Contains(caught, liar.lie) {
					t.Error("the liar was not caught by its check")
				}
				for _, name := range caught {
					if name != liar.lie && !slices.Contains(liar.also, name) {
						t.Errorf("the liar was also caught by: %s", name)
					}
				}
			})
		})
	}
}

// basic are the checks that these liars prove; newlies_test.go proves the others.
func basic() []registrytest.Check {
	var proven []string
	for _, liar := range liars() {
		proven = append(proven, liar.lie)
	}
	return slices.DeleteFunc(registrytest.Checks(), func(c registrytest.Check) bool { return !slices.Contains(proven, c.Name) })
}

func TestAnHonestRegistryIsNotCaught(t *testing.T) {
	plugintest.Run(t, registrytest.Checks(), registrytest.Subject{Registry: newFakeRegistry()})
}

func TestAnHonestRegistryIsNotCaughtOverTheWire(t *testing.T) {
	conn := plugintest.Serve(t, registry.Plugin(newFakeRegistry()))
	plugintest.Run(t, registrytest.Checks(), registrytest.Subject{Registry: registry.Client(conn)})
}

func TestAKitThatFoundNothingTellsWhatItNeeds(t *testing.T) {
	empty := &fakeRegistry{}
	result := kit.Run(context.Background(), registrytest.Checks()[:1], registrytest.Subject{Registry: empty})[0]
	if result.Err == nil || !strings.Contains(result.Err.Error(), "must hold at least one bundle") {
		t.Fatalf("got %v", result.Err)
	}
}
