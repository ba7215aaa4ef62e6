package registrytest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// Subject is a registry to judge, with the ways to control it.
type Subject struct {
	Registry registry.Registry

	// Publish makes the backend of Registry offer a generated catalogue and nothing else. Without it, the kit examines
	// what the registry offers and compares it with Known.
	Publish   func(context.Context, Catalogue) error
	Name      func(scope, last string) string // returns the name of a generated bundle; nil for @scope/last
	Platforms Platforms                       // of generated bundles; "" means Systems

	Known Catalogue // what is known about the bundles of a registry without Publish

	Backend kit.Backend                 // stops and starts the backend of Registry; a Front can do more
	Fixed   bool                        // the registry has no backend, and its contents do not change while it runs
	Age     time.Duration               // how old a response may be; 0 means one minute, as in the contract
	Restart func(context.Context) error // ends the process of Registry with kill -9; later calls go to the next process. May be nil
}

// timeout is the deadline of a call that must succeed.
const timeout = 30 * time.Second

// The sentences of the contract that failures cite.
const (
	concurrently = "Calls are concurrent, each with a deadline: a call that ends does not end the others"
	reallyAsked  = "NOT_FOUND only if the registry was actually asked and has no such bundle or version"
	notAsked     = "its backend does not respond, breaks off, or responds with an error or with something that is not a response of the registry"
	byteForByte  = "Names, versions and platforms are compared byte for byte"
	sameBytes    = "The same name and version always have the same bytes on each platform"
	minuteOld    = "A response is at most a minute old: it reflects bundles and versions published or withdrawn before that"
	ownName      = "It does not match a text with a word that appears nowhere in the bundle's own description of itself"
	onePage      = "Each bundle is on one page only, and a search reaches a last page"
	undisturbed  = "Searches that are read at the same time do not disturb each other"
	meanwhile    = "each bundle that is published or withdrawn may cause one other bundle to be repeated or left out"
	limit100     = "INVALID_ARGUMENT for a limit over 100"
	pageLimit    = "The maximum number of entries on the page, 1 to 100; 0 means 20"
	listsAll     = "The text to look for; empty lists everything"
	exactVersion = "The response names an exact version, never a range: the requested one, or the latest"
	latestIs     = "The latest is the highest release by semantic versioning, or the highest prerelease if there is no release"
	emptyName    = "INVALID_ARGUMENT for an empty name"
	wellFormed   = "Package is how to get one bundle"
	entryFormed  = "Entry is one bundle that a search found"
	lastByte     = "The stream ends OK after the last byte; any other end means that the bytes are not complete"
	notPackage   = "A file that breaks off, or an error page from the backend, is not the package"
	otherKind    = "INVALID_ARGUMENT for packages of another kind"
	neverGave    = "one that Resolve never returned is an error, and must not cause anything else to be read or requested"
	megabyte     = "at most 1 MiB; 64 KiB is a good size"
	stops        = "A call that has not returned by its deadline is of no use to the server, and the plugin stops working on it"
	stated       = "as the registry states it and not computed from whatever a backend sends"
)

// failure returns the failure of a call whose result differs from the model.
func failure(call string, answered any, demanded, sentence string) error {
	return kit.NewFailure(fmt.Sprint(answered), demanded, sentence, call)
}

// The names of the properties.
const (
	Searches  = "every search finds what the model finds, on pages of every size"
	Resolves  = "every name, version and platform resolves as in the model"
	Downloads = "every download is the whole file, and only what Resolve returned can be downloaded"
	Changes   = "published and withdrawn bundles show up, even while pages are being read"
	Faults    = "a failing backend changes no result"
	GivenUp   = "abandoned calls end, and cost nothing"
)

// Properties returns the properties that the contract requires of a registry.
func Properties() []kit.Property[Subject] {
	contract := kit.Contract("registry")
	return []kit.Property[Subject]{
		{Name: Searches, Sentences: contract, Try: searches},
		{Name: Resolves, Sentences: contract, Try: resolves},
		{Name: Downloads, Sentences: contract, Try: downloads},
		{Name: Changes, Sentences: contract, Try: changes},
		{Name: Faults, Sentences: contract, Try: faults},
		{Name: GivenUp, Sentences: contract, Try: givenUp},
	}
}

// catalogue returns the contents of the registry: a generated catalogue that it publishes, or what the registry itself
// lists.
func (s Subject) catalogue(ctx context.Context, r *rand.Rand, bundles int) Catalogue {
	if s.Publish == nil {
		return s.learn(ctx)
	}
	c := generate(r, bundles, s.name, either(s.Platforms, Systems))
	s.publish(ctx, c)
	return c
}

func (s Subject) age() time.Duration { return either(s.Age, time.Minute) }

func (s Subject) name(scope, last string) string {
	if s.Name == nil {
		return "@" + scope + "/" + last
	}
	return s.Name(scope, last)
}

// publish publishes a catalogue and waits until the registry shows it.
func (s Subject) publish(ctx context.Context, c Catalogue) {
	if err := s.Publish(ctx, c); err != nil {
		kit.Must(kit.CannotJudge("a generated catalogue could not be published: %v", err))
	}
	for until := time.Now().Add(s.age()); ; {
		late := time.Now().After(until) // before the request
		err := answered(s.checkListed(ctx, c))
		if failed, ok := errors.AsType[*kit.Failure](err); !ok || late || failed.Sentence != minuteOld {
			kit.Must(err)
			return
		}
		kit.Must(kit.Pause(ctx, time.Second/4))
	}
}

// checkListed compares everything that a search lists with the catalogue.
func (s Subject) checkListed(ctx context.Context, c Catalogue) error {
	got, err := s.read(ctx, registry.Query{Limit: registry.MaxLimit}, 0)
	if err != nil {
		return err
	}
	versions := map[string]string{}
	for _, e := range got {
		versions[e.Name] = e.Version
	}
	for _, b := range c.Bundles {
		if versions[b.Name] != b.Latest {
			return failure("Search, a minute after "+b.Name+" "+b.Latest+" became its latest version", fmt.Sprintf("the version %q", versions[b.Name]), "the version "+b.Latest, minuteOld)
		}
		delete(versions, b.Name)
	}
	for name := range versions {
		return failure("Search, a minute after "+name+" was withdrawn", "it is listed", "it is not listed", minuteOld)
	}
	return nil
}

// most is how many bundles of a registry without Publish the kit examines.
const most = 500

// learn returns a catalogue of what the registry lists and what is known about it.
func (s Subject) learn(ctx context.Context) Catalogue {
	all, err := s.read(ctx, registry.Query{Limit: registry.MaxLimit}, most)
	kit.Must(answered(err))
	c := Catalogue{Bundles: slices.Clone(s.Known.Bundles), Whole: len(all) < most}
	for _, e := range all {
		if _, known := s.Known.find(e.Name); known {
			continue
		}
		b := Bundle{Name: e.Name, Title: e.Title, Description: e.Description, Latest: e.Version, Versions: []Version{{Version: e.Version}}, more: true}
		if len(c.Bundles) < 40 {
			here := registry.Ref{Name: e.Name, OS: runtime.GOOS, Arch: runtime.GOARCH}
			pkg, err := s.resolve(ctx, here)
			switch {
			case errors.Is(err, plugins.ErrNotFound):
				b.Versions[0].Files = []File{}
			case err != nil:
				kit.Must(failure(fmt.Sprintf("Resolve(%+v), which a search found", here), err, "a package, or NOT_FOUND for this platform", concurrently))
			default:
				c.mcpb = c.mcpb || pkg.Kind == registry.KindMCPB
				b.Versions[0] = Version{Version: pkg.Version, Files: []File{{OS: here.OS, Arch: here.Arch, SHA256: pkg.SHA256, Size: pkg.Size}}}
			}
		}
		c.Bundles = append(c.Bundles, b)
	}
	if !slices.ContainsFunc(c.Bundles, func(b Bundle) bool { return b.fitsHere() }) {
		kit.Must(kit.CannotJudge("the registry shows no bundle for this platform: give settings for a registry that has one"))
	}
	return c
}

func (b Bundle) fitsHere() bool {
	return slices.ContainsFunc(b.Versions, func(v Version) bool {
		_, fits := v.file(runtime.GOOS, runtime.GOARCH)
		return fits || v.Files == nil && len(b.notFor) == 0
	})
}

// requireCatalogue ends the property if a registry cannot be judged because only its own list of bundles is
// known.
func (s Subject) requireCatalogue(t *kit.Trial, c Catalogue) {
	if s.Publish == nil && len(s.Known.Bundles) == 0 {
		kit.Must(kit.CannotJudge("what the registry shows is consistent, but the kit cannot know whether it is correct: put ${catalogue} in the settings, " +
			"or give --bundles with what it contains, including a bundle with several versions and, if there are bundle files, one with notFor"))
	}
	if !slices.ContainsFunc(c.Bundles, func(b Bundle) bool { return len(b.Versions) > 1 }) {
		t.Cover("no bundle is known to have several versions, so their order was not tested")
	}
	if s.Publish == nil && c.mcpb && !slices.ContainsFunc(c.Bundles, func(b Bundle) bool { return len(b.notFor) > 0 }) {
		t.Cover("every known bundle is for all platforms, so unsupported platforms were not tested")
	}
}

// atOnce makes calls, several at a time. A call that fails is repeated alone, for a report without the others.
func atOnce(ctx context.Context, calls []func(context.Context) error) {
	var wrong atomic.Int64
	err := kit.Catch(func() {
		kit.AtOnce(ctx, len(calls), 16, func(ctx context.Context, i int) {
			err := answered(calls[i](ctx))
			if err != nil && ctx.Err() == nil {
				wrong.Store(int64(i))
			}
			kit.Must(err)
		})
	})
	if _, failed := errors.AsType[*kit.Failure](err); failed {
		kit.Must(answered(calls[wrong.Load()](ctx)))
	}
	kit.Must(kit.After(err, "with 15 other calls at the same time:"))
}
