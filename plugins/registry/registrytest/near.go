package registrytest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// near are promises about names, versions, platforms and artifacts that differ little from good ones.
func near() []Check {
	const none, platform = "NOT_FOUND only after the registry really was asked and has no such bundle or version", "What it names is for that platform"
	return []Check{
		check("a name that is almost that of a bundle is not found", none, nearNames),
		check("a version that is almost that of a bundle is not found", "The answer names an exact version, never a range: the one that was asked for", nearVersions),
		{Name: "a platform that is almost that of a bundle is not found", Contract: platform, Run: eachKnown(nearPlatforms)},
		{Name: "each version of a known bundle has bytes of its own", Contract: "the same name and version are the same bytes", Run: eachKnown(ownBytes)},
		check("an artifact that is almost one that Resolve gave is an error", "one that Resolve never gave is an error", nearArtifacts),
		check("every bundle that can be fetched has the bytes that were promised", "the file's digest in lower-case hex", everyFileIsTrue),
		check("a download whose deadline has passed is an error", "Calls come concurrently, each with a deadline", fetchesInTime),
		check("a piece of a download has at most 1 MiB", "The next bytes: at most 1 MiB", piecesAreBounded),
	}
}

// rewritten are texts that become text when they are decoded, cleaned, trimmed or cut.
func rewritten(text string) []string {
	_, size := utf8.DecodeRuneInString(text)
	first, rest := text[:size], text[size:]
	return []string{
		text + " ", " " + text, text + "\t", text + "\n", text + "\x00", text + "\x00x", fmt.Sprintf("%%%02X%s", text[0], rest), first + "\u200b" + rest, "\ufeff" + text,
		text + "/", "/" + text, "./" + text, text + "?x=1", text + "#x", text + ";x", strings.ReplaceAll(text, "/", "//"), strings.ReplaceAll(text, "/", `\`), strings.ReplaceAll(text, "/", "%2F"),
	}
}

// nearNames resolves names that are no bundle's, but share most of their characters with one.
func nearNames(ctx context.Context, r registry.Registry) error {
	found, err := resolved(ctx, r)
	if err != nil {
		return err
	}
	all, err := names(ctx, r, registry.Query{Limit: registry.MaxLimit}, 10*registry.MaxLimit)
	if err != nil {
		return err
	}
	for _, p := range found[:min(len(found), 3)] {
		name := p.pkg.Name
		_, last, _ := strings.Cut(name, "/")
		for _, other := range append(rewritten(name), name+"x", "x"+name, name[:len(name)-1], name[1:], strings.ToUpper(name), name+"@"+p.pkg.Version, last, strings.ReplaceAll(name, "-", "_"), strings.ReplaceAll(name, ".", "-"), "npm:"+name, name+".mcpb", " ", strings.Repeat(name, 30)) {
			if other == "" || other == name || slices.Contains(all, other) {
				continue
			}
			_, err := r.Resolve(ctx, ref(other, ""))
			if err := mustBe(err, plugins.ErrNotFound, fmt.Sprintf("Resolve of the name %q, which is almost %q,", other, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// nearVersions resolves versions that a bundle does not have, but that name one of its versions in another way. A
// registry may have a version of such a name, if it has bytes of its own.
func nearVersions(ctx context.Context, r registry.Registry) error {
	found, err := resolved(ctx, r)
	if err != nil {
		return err
	}
	for _, p := range found[:min(len(found), 2)] {
		version := p.pkg.Version
		major, _, _ := strings.Cut(version, ".")
		variants := []string{"latest", "LATEST", major, major + ".x", "v" + version, "=" + version, "~" + version, ">=" + version, version + ".0", version + "+build", version + "-0", "0" + version, "V" + version, "^" + version, "stable", "newest", "current", " ", strings.Repeat("9.", 150) + "9"}
		variants = append(variants, rewritten(version)...)
		if i := strings.LastIndexByte(version, '.'); i > 0 {
			variants = append(variants, version[:i], version[:i+1]+"0"+version[i+1:])
		}
		for _, other := range variants {
			got, err := r.Resolve(ctx, ref(p.pkg.Name, other))
			if err == nil && got.Version == other && other != version && (got.Kind != registry.KindMCPB || got.Artifact != p.pkg.Artifact) && major != other {
				continue
			}
			if other == version {
				continue
			}
			if err := mustBe(err, plugins.ErrNotFound, fmt.Sprintf("Resolve of %s in the version %q, which is almost %q,", p.pkg.Name, other, version)); err != nil {
				return err
			}
		}
	}
	return nil
}

// aliases are what others than Go call an architecture.
func aliases(arch string) []string {
	return map[string][]string{"amd64": {"x86_64", "x86-64", "x64"}, "arm64": {"aarch64", "armv8"}}[arch]
}

// nearPlatforms resolves a bundle that is not for every platform.
func nearPlatforms(ctx context.Context, r registry.Registry, k Known) (bool, error) {
	if len(k.For) == 0 || len(k.NotFor) == 0 {
		return false, nil
	}
	for _, p := range k.For {
		var others []Platform
		if slices.ContainsFunc(k.NotFor, func(no Platform) bool { return no.OS != p.OS }) {
			others = append(others, Platform{p.OS[:len(p.OS)-1], p.Arch}, Platform{p.OS + "x", p.Arch}, Platform{strings.ToUpper(p.OS), p.Arch}, Platform{"no-system", p.Arch}, Platform{p.OS + " ", p.Arch})
		}
		if slices.ContainsFunc(k.NotFor, func(no Platform) bool { return no.OS == p.OS }) { // it is not for every architecture
			others = append(others, Platform{p.OS, p.Arch[:len(p.Arch)-1]}, Platform{p.OS, p.Arch + "x"}, Platform{p.OS, strings.ToUpper(p.Arch)}, Platform{p.OS, "no-architecture"}, Platform{p.OS, " " + p.Arch}, Platform{p.OS, ""})
			for _, alias := range aliases(p.Arch) {
				others = append(others, Platform{p.OS, alias})
			}
		}
		for _, other := range others {
			_, err := r.Resolve(ctx, k.ref("", other))
			if err := mustBe(err, plugins.ErrNotFound, fmt.Sprintf("Resolve for %q/%q, when the bundle is for %s/%s,", other.OS, other.Arch, p.OS, p.Arch)); err != nil {
				return true, err
			}
		}
	}
	return true, nil
}

func ownBytes(ctx context.Context, r registry.Registry, k Known) (bool, error) {
	if len(k.Versions) < 2 {
		return false, nil
	}
	sums := map[string]string{}
	for _, version := range k.Versions {
		pkg, err := r.Resolve(ctx, k.ref(version, k.first()))
		if err != nil {
			return true, fmt.Errorf("its version %s could not be resolved: %w", version, err)
		}
		if pkg.Kind != registry.KindMCPB {
			return false, nil
		}
		sum, _, err := fetch(ctx, r, pkg)
		if err != nil {
			return true, err
		}
		if other, twice := sums[sum]; twice {
			return true, fmt.Errorf("its versions %s and %s are the same bytes", other, version)
		}
		sums[sum] = version
	}
	return true, nil
}

func nearArtifacts(ctx context.Context, r registry.Registry) error {
	return files(ctx, r, func(p registry.Package) error {
		artifact := p.Artifact
		for _, other := range append(rewritten(artifact), "", artifact+"x", "x"+artifact, artifact[:len(artifact)-1], artifact[1:], artifact+"/.", strings.ToUpper(artifact)) {
			if other == artifact {
				continue
			}
			p.Artifact = other
			if _, n, err := fetch(ctx, r, p); err == nil {
				return fmt.Errorf("the artifact %q, which Resolve never gave, must be an error of Fetch; it gave %d bytes, as %q does", other, n, artifact)
			}
		}
		return nil
	})
}

// everyFileIsTrue fetches every bundle that the kit looks at, large ones aside.
func everyFileIsTrue(ctx context.Context, r registry.Registry) error {
	const large = 1 << 20
	some := false
	err := each(ctx, r, func(p registry.Package) error {
		if p.Kind != registry.KindMCPB || p.SHA256 == "" || p.Size == 0 || p.Size > large {
			return nil
		}
		some = true
		sum, size, err := fetch(ctx, r, p)
		if err == nil && (sum != p.SHA256 || size != p.Size) {
			err = fmt.Errorf("the bytes must have the sha256 %s and the size %d, as Resolve promised; they have %s and %d", p.SHA256, p.Size, sum, size)
		}
		return err
	})
	if err == nil && !some {
		return kit.Skip("none of the bundles that the kit looked at is a file of up to 1 MiB with a known digest")
	}
	return err
}

func fetchesInTime(ctx context.Context, r registry.Registry) error {
	return files(ctx, r, func(p registry.Package) error {
		past, cancel := context.WithDeadline(ctx, passed())
		defer cancel()
		return within(slack, "Fetch with a deadline that has passed", func() error {
			_, _, err := fetch(past, r, p)
			if err == nil || errors.Is(err, plugins.ErrNotFound) {
				return fmt.Errorf("a download whose deadline has passed must be an error other than not found; it was: %w", errors.Join(err))
			}
			return nil
		})
	})
}

// pieces is a download that has come from a plugin in messages.
type pieces interface {
	LargestPiece() int // in bytes, of those that were read
}

func piecesAreBounded(ctx context.Context, r registry.Registry) error {
	const most = 1 << 20
	some := false
	err := files(ctx, r, func(p registry.Package) (err error) {
		body, err := r.Fetch(ctx, p)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, body.Close()) }()
		from, ok := body.(pieces)
		n, err := io.Copy(io.Discard, body)
		if err != nil || !ok || n <= most {
			return err
		}
		some = true
		if largest := from.LargestPiece(); largest > most {
			return fmt.Errorf("a piece of a download must have at most %d bytes; one has %d", most, largest)
		}
		return nil
	})
	if err == nil && !some {
		return kit.Skip("none of the bundles that the kit looked at is a file over 1 MiB that came over a connection")
	}
	return err
}
