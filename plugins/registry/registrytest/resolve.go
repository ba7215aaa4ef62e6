package registrytest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"regexp"
	"runtime"
	"slices"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

var (
	// exact matches a version that is not a range.
	exact      = regexp.MustCompile(`^v?[0-9A-Za-z][0-9A-Za-z.+_!~-]*$`)
	identifier = regexp.MustCompile(`^(@[^@/\s=<>~!]+/)?[^@/\s=<>~!]+$`)
	ranges     = regexp.MustCompile(`(?i)^v?([0-9]+\.)*[x*](\.[x*])*$|^(latest|next|stable|newest)$`)
	hex64      = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// malformation returns what a package lacks, or "" for a well-formed one.
func malformation(p registry.Package) string {
	names := map[string]bool{}
	for _, v := range p.Variables {
		if v.Name == "" || names[v.Name] || v.Default != "" && len(v.Choices) > 0 && !slices.Contains(v.Choices, v.Default) {
			return "variables with distinct names, and defaults that are among their choices"
		}
		names[v.Name] = true
	}
	address, err := url.Parse(p.Remote.URL)
	switch {
	case p.TrustScore < 0 || p.TrustScore > 100:
		return "a trust score of 0 to 100"
	case !exact.MatchString(p.Version):
		return "an exact version"
	case p.SHA256 != "" && !hex64.MatchString(p.SHA256):
		return "a sha256 in lower-case hex, or none"
	case p.Kind == registry.KindMCPB && (p.Artifact == "" || p.Size < 0):
		return "an artifact, and a size that is not negative"
	case (p.Kind == registry.KindNPM || p.Kind == registry.KindPyPI) &&
		(!identifier.MatchString(p.Identifier) || !exact.MatchString(p.IdentifierVersion) || ranges.MatchString(p.IdentifierVersion)):
		return "an identifier without a version, and its exact version"
	case p.Kind == registry.KindRemote &&
		(err != nil || address.Scheme != "https" && address.Scheme != "http" || p.Remote.Transport != "streamable-http" && p.Remote.Transport != "sse"):
		return "an http URL and the transport streamable-http or sse"
	case !slices.Contains([]registry.Kind{registry.KindMCPB, registry.KindNPM, registry.KindPyPI, registry.KindRemote}, p.Kind):
		return "a kind"
	}
	return ""
}

// resolve calls Resolve with the deadline for a call.
func (s Subject) resolve(ctx context.Context, ref registry.Ref) (registry.Package, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return s.Registry.Resolve(ctx, ref)
}

// resolves compares the result of Resolve with the model.
func (c Catalogue) resolves(ref registry.Ref, pkg registry.Package, err error) error {
	call := fmt.Sprintf("Resolve(%.200q, version %.100q, %q/%q)", ref.Name, ref.Version, ref.OS, ref.Arch)
	if ref.Name == "" {
		return mustBe(call, err, plugins.ErrInvalid, emptyName)
	}
	want := c.resolve(ref)
	sentence := exactVersion
	switch _, known := c.find(ref.Name); {
	case want.versions == nil && known:
		sentence = byteForByte
	case want.notFound && !want.other, !known:
		sentence = reallyAsked
	case ref.Version == "":
		sentence = latestIs
	}
	if err != nil {
		if want.notFound && errors.Is(err, plugins.ErrNotFound) {
			return nil
		}
		return failure(call, "the error "+kit.ErrorText(err), want.words, sentence)
	}
	answered := fmt.Sprintf("%s %s, sha256 %q, %d bytes", pkg.Name, pkg.Version, pkg.SHA256, pkg.Size)
	f, known := want.file[pkg.Version]
	b, _ := c.find(ref.Name)
	switch {
	case pkg.Name != ref.Name:
		return failure(call, answered, "a package with the requested name", byteForByte)
	case malformation(pkg) != "":
		return failure(call, fmt.Sprintf("%+v", pkg), malformation(pkg), wellFormed)
	case c.Whole && !b.described(pkg.Title, pkg.Description):
		return failure(call, fmt.Sprintf("%+v", pkg), fmt.Sprintf("the title %q and the description %q, or none", b.Title, b.Description), wellFormed)
	case want.other && pkg.Version == ref.Version || want.other && ref.Version == "":
		return c.checkUnknown(call, pkg)
	case !slices.Contains(want.versions, pkg.Version):
		return failure(call, answered, want.words, sentence)
	case known && f.SHA256 != pkg.SHA256 && f.SHA256 != "":
		return failure(call, answered, "the sha256 "+f.SHA256, map[bool]string{true: stated, false: sameBytes}[c.Whole])
	case known && f.Size != pkg.Size && f.Size > 0 && pkg.Size > 0:
		return failure(call, answered, fmt.Sprintf("a size of %d bytes, or none", f.Size), sameBytes)
	}
	return nil
}

// checkUnknown accepts a bundle or version that the catalogue does not know, unless it has the bytes of one that the
// catalogue knows.
func (c Catalogue) checkUnknown(call string, pkg registry.Package) error {
	for _, b := range c.Bundles {
		for _, v := range b.Versions {
			if len(v.Files) > 0 && v.Files[0].SHA256 != "" && v.Files[0].SHA256 == pkg.SHA256 && (b.Name != pkg.Name || v.Version != pkg.Version) {
				return failure(call, "the file of "+b.Name+" "+v.Version, "NOT_FOUND, or a file of its own", byteForByte)
			}
		}
	}
	return nil
}

// checkResolve returns a call that compares Resolve with the model.
func (s Subject) checkResolve(c Catalogue, ref registry.Ref) func(context.Context) error {
	return func(ctx context.Context) error {
		pkg, err := s.resolve(ctx, ref)
		return c.resolves(ref, pkg, err)
	}
}

// platforms returns the platforms for which to resolve a bundle: common Go platforms for a generated catalogue, and
// otherwise those about which something is known.
func (c Catalogue) platforms(b Bundle) (all []registry.Ref) {
	if c.generated {
		for _, os := range []string{"linux", "darwin", "windows"} {
			all = append(all, registry.Ref{OS: os, Arch: "amd64"}, registry.Ref{OS: os, Arch: "arm64"})
		}
		return all
	}
	all = slices.Clone(b.notFor)
	for _, v := range b.Versions {
		for _, f := range v.Files {
			if f.OS != "" {
				all = append(all, registry.Ref{OS: f.OS, Arch: f.Arch})
			}
		}
	}
	if len(all) == len(b.notFor) {
		all = append(all, registry.Ref{OS: runtime.GOOS, Arch: runtime.GOARCH})
	}
	return all
}

// good returns the correct queries about a bundle: the latest version for every platform, and every version for half of
// the platforms of a generated one.
func (c Catalogue) good(b Bundle) (all []registry.Ref) {
	for i, p := range c.platforms(b) {
		p.Name = b.Name
		all = append(all, p)
		for j, v := range b.Versions {
			if p.Version = v.Version; !c.generated || (i+j)%2 == 0 {
				all = append(all, p)
			}
		}
	}
	return all
}

// wrong returns queries that are almost, but not quite, about a bundle.
func (c Catalogue) wrong(r *rand.Rand, b Bundle) (all []registry.Ref) {
	platforms := c.platforms(b)
	at := platforms[len(platforms)-1]
	for _, name := range near(b.Name) {
		all = append(all, registry.Ref{Name: name, OS: at.OS, Arch: at.Arch})
	}
	all = append(all, registry.Ref{Name: b.Name + "@" + b.Latest, OS: at.OS, Arch: at.Arch}, registry.Ref{Name: nonsense(r), OS: at.OS, Arch: at.Arch}, registry.Ref{OS: at.OS, Arch: at.Arch})
	for _, v := range []string{b.Versions[0].Version, b.Latest} {
		for _, version := range nearVersions(v) {
			all = append(all, registry.Ref{Name: b.Name, Version: version, OS: at.OS, Arch: at.Arch})
		}
	}
	if !c.generated && len(b.notFor) == 0 {
		return all
	}
	for _, v := range b.Versions {
		for _, f := range v.Files {
			for _, p := range nearPlatforms(f) {
				loose := !c.generated && !slices.ContainsFunc(b.notFor, func(no registry.Ref) bool { return (no.OS != f.OS) == (p.OS != f.OS) })
				if p.Name, p.Version = b.Name, v.Version; !loose {
					all = append(all, p)
				}
			}
		}
	}
	return all
}

func resolves(ctx context.Context, t *kit.Trial, s Subject) {
	r := t.Rand(0)
	c := s.catalogue(ctx, r, min(t.Count(40), 200))
	var calls []func(context.Context) error
	for _, b := range c.pick(r, t.Count(40)) {
		if b.more && b.Versions[0].Files == nil { // of a registry so large that the bundle was not examined
			continue
		}
		for _, ref := range c.good(b) {
			calls = append(calls, s.checkResolve(c, ref))
		}
	}
	some := c.pick(r, t.Count(3))
	for _, b := range append(some, specific(c)...) {
		if b.more && len(b.Versions[0].Files) == 0 {
			continue
		}
		for _, ref := range c.wrong(r, b) {
			calls = append(calls, s.checkResolve(c, ref))
		}
	}
	for _, b := range c.pick(r, t.Count(12)) {
		for _, name := range near(b.Name) {
			if s.Publish != nil { // others may use the backend, too
				calls = append(calls, s.checkResolve(c, registry.Ref{Name: name, OS: "linux", Arch: "amd64"}))
			}
		}
	}
	atOnce(ctx, calls)
	t.Cover("%d queries for names, versions and platforms that are correct or almost correct, about %d bundles", len(calls), len(c.Bundles))
	s.requireCatalogue(t, c)
}

// specific returns a bundle with a file for a single architecture, and one with a file for a single operating system.
func specific(c Catalogue) (some []Bundle) {
	for _, is := range []func(File) bool{func(f File) bool { return f.Arch != "" }, func(f File) bool { return f.OS != "" && f.Arch == "" }} {
		if i := slices.IndexFunc(c.Bundles, func(b Bundle) bool { return slices.ContainsFunc(b.Versions[len(b.Versions)-1].Files, is) }); i >= 0 && !c.Bundles[i].more {
			some = append(some, c.Bundles[i])
		}
	}
	return some
}
