package registrytest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// ladder lists versions in ascending order, with all prereleases before the releases.
var ladder = []string{"0.1.0-alpha", "1.0.0-rc.9", "1.0.0-rc.10", "3.0.0-beta.1", "0.9.0", "0.10.0", "1.0.0", "1.9.0", "1.10.0", "2.0.0"}

// change is something that happens to a catalogue.
type change struct {
	withdraw bool
	bundle   int // index, below 4
	version  int // index into ladder
}

func (ch change) String() string {
	return fmt.Sprintf("%s version %s of bundle %d", map[bool]string{true: "withdraw", false: "publish"}[ch.withdraw], ladder[ch.version], ch.bundle)
}

// shop is a changing catalogue, created anew for each history.
type shop struct {
	s       Subject
	names   []string
	has     map[[2]int]Bundle // by bundle and version: a bundle with only this version
	fixed   []Bundle
	history []string
}

// catalogue returns the current contents of the shop.
func (p *shop) catalogue() Catalogue {
	c := Catalogue{Whole: true, Bundles: slices.Clone(p.fixed)}
	for i, name := range p.names {
		b := Bundle{Name: name, Title: "Title", Description: "Changes."}
		for v := range ladder {
			if one, ok := p.has[[2]int{i, v}]; ok {
				b.Versions, b.Latest = append(b.Versions, one.Versions[0]), ladder[v]
			}
		}
		if len(b.Versions) > 0 {
			c.Bundles = append(c.Bundles, b)
		}
	}
	return c
}

// apply applies a change and reports whether anything changed.
func (p *shop) apply(r *rand.Rand, ch change) bool {
	if ch.withdraw { // one of the existing versions
		var there []int
		for at := range p.has {
			if at[0] == ch.bundle {
				there = append(there, at[1])
			}
		}
		if len(there) == 0 {
			return false
		}
		slices.Sort(there)
		ch.version = there[ch.version%len(there)]
	}
	at := [2]int{ch.bundle, ch.version}
	_, there := p.has[at]
	if there != ch.withdraw { // already published
		return false
	}
	if delete(p.has, at); !ch.withdraw {
		b := Bundle{Name: p.names[ch.bundle], Title: "Title", Description: "Changes."}
		b.release(r, ladder[ch.version], 3, Everywhere)
		p.has[at] = b
	}
	p.history = append(p.history, ch.String())
	return true
}

func changes(ctx context.Context, t *kit.Trial, s Subject) {
	switch {
	case s.Publish == nil && s.Fixed:
		kit.Must(kit.DoesNotApply("what the registry holds does not change while it runs (--backend none)"))
	case s.Publish == nil:
		kit.Must(kit.CannotJudge("nothing could be published: put ${catalogue} in the settings, with --publish if the backend does not read that folder itself, " +
			"or give --backend none if what the registry holds does not change while it runs"))
	}
	n := t.Count(40)
	t.Explore(ctx, 1, n, func(ctx context.Context, draw *rapid.T) {
		r := rand.New(rand.NewPCG(t.Seed, uint64(rapid.IntRange(0, 1<<30).Draw(draw, "bytes")))) //nolint:gosec // it must repeat
		p := &shop{s: s, has: map[[2]int]Bundle{}, fixed: generate(r, 4, func(scope, last string) string { return s.name("fixed-"+scope, last) }, Everywhere).Bundles}
		for i := range 4 {
			p.names = append(p.names, s.name("changing", fmt.Sprintf("%c-bundle", 'a'+7*i)))
		}
		one := rapid.Custom(func(draw *rapid.T) change {
			return change{withdraw: rapid.IntRange(0, 2).Draw(draw, "kind") == 0, bundle: rapid.IntRange(0, 3).Draw(draw, "bundle"), version: rapid.IntRange(0, len(ladder)-1).Draw(draw, "version")}
		})
		for _, ch := range rapid.SliceOfN(one, 0, 6).Draw(draw, "what is there") {
			p.apply(r, change{bundle: ch.bundle, version: ch.version})
		}
		err := kit.Catch(func() {
			s.publish(ctx, p.catalogue())
			for _, ch := range rapid.SliceOfN(one, 1, 4).Draw(draw, "changes") {
				p.step(ctx, r, ch, rapid.IntRange(1, 4).Draw(draw, "page"))
			}
		})
		kit.Must(answered(kit.After(err, p.history...)))
	})
	t.Cover("%d catalogues that change up to 4 times while their pages are read, of up to 9 bundles with up to %d versions", n, len(ladder))
}

// step changes the catalogue after a page of a search, and then checks everything.
func (p *shop) step(ctx context.Context, r *rand.Rand, ch change, page int) {
	before, made := p.catalogue(), 0
	q := registry.Query{Limit: 2}
	got := kit.Got(p.s.readWith(ctx, q, 0, func(pages int) error {
		if pages != page || !p.apply(r, ch) {
			return nil
		}
		made++
		return p.s.Publish(ctx, p.catalogue())
	}))
	after := p.catalogue()
	if made > 0 {
		// The changed bundle may be present or not. One of the others may be repeated or left out.
		changed := p.names[ch.bundle]
		got = slices.DeleteFunc(got, func(e registry.Entry) bool { return e.Name == changed })
		isChanged := func(b Bundle) bool { return b.Name == changed }
		rest := Catalogue{Whole: true, Bundles: slices.DeleteFunc(slices.Clone(before.Bundles), isChanged)}
		kit.Must(kit.Citing(rest.found(q, got, made), meanwhile, onePage, listsAll))
	} else if p.apply(r, ch) {
		kit.Must(p.s.Publish(ctx, p.catalogue()))
		after = p.catalogue()
	}
	changed := time.Now()
	p.s.publish(ctx, after)
	all := []registry.Ref{{Name: p.names[ch.bundle], Version: ladder[ch.version], OS: "linux", Arch: "amd64"}}
	for _, name := range p.names {
		all = append(all, registry.Ref{Name: name, OS: "linux", Arch: "amd64"})
	}
	for _, ref := range all {
		pkg, err := p.s.resolveSince(ctx, changed, before, after, ref)
		if err == nil && pkg.Kind == registry.KindMCPB {
			kit.Must(p.s.checkDownload(parcel{pkg, pkg.SHA256, pkg.Size})(ctx))
		}
	}
}

// resolveSince resolves ref after the catalogue has changed, until the answer reflects the change. As long as
// answers may be stale, the previous answer is also allowed.
func (s Subject) resolveSince(ctx context.Context, changed time.Time, before, after Catalogue, ref registry.Ref) (registry.Package, error) {
	for {
		late := time.Since(changed) > s.age() // before the request
		pkg, err := s.resolve(ctx, ref)
		if wrong := after.resolves(ref, pkg, err); wrong == nil || late || before.resolves(ref, pkg, err) != nil {
			kit.Must(wrong)
			return pkg, err
		}
		kit.Must(kit.Pause(ctx, time.Second/4))
	}
}
