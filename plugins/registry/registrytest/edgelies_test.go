package registrytest_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// edgeLies decode, cut or complete what they are asked for.
func edgeLies() map[string]wrongAbout {
	const name, version, platform, artifact = "a name that is almost that of a bundle is not found", "a version that is almost that of a bundle is not found", "a platform that is almost that of a bundle is not found", "an artifact that is almost one that Resolve gave is an error"
	names := func(change func(string) string) wrongAbout {
		return wrongAbout{name, altered{ask: func(r registry.Ref) registry.Ref { r.Name = change(r.Name); return r }}}
	}
	versions := func(change func(string) string) wrongAbout {
		return wrongAbout{version, altered{ask: func(r registry.Ref) registry.Ref { r.Version = change(r.Version); return r }}}
	}
	artifacts := func(change func(string) string) wrongAbout {
		return wrongAbout{artifact, altered{fetch: func(c *catalog, pkg registry.Package) (io.ReadCloser, error) {
			pkg.Artifact = change(pkg.Artifact)
			return c.Fetch(context.Background(), pkg)
		}}}
	}
	platforms := func(ask func(registry.Ref) registry.Ref) wrongAbout { return wrongAbout{platform, altered{ask: ask}} }
	latest := func(words ...string) func(string) string {
		return func(v string) string {
			for _, word := range words {
				if v == word {
					return ""
				}
			}
			return v
		}
	}
	return map[string]wrongAbout{
		"decodes percent signs of names":        names(decoded),
		"ends names at a NUL":                   names(upTo("\x00")),
		"drops queries of names":                names(upTo("?")),
		"drops fragments of names":              names(upTo("#")),
		"takes _ for - in names":                names(func(s string) string { return strings.ReplaceAll(s, "_", "-") }),
		"takes a backslash for a slash":         names(func(s string) string { return strings.ReplaceAll(s, `\`, "/") }),
		"passes over doubled slashes":           names(func(s string) string { return strings.ReplaceAll(s, "//", "/") }),
		"passes over characters without width":  names(strings.NewReplacer("\u200b", "", "\ufeff", "").Replace),
		"drops the ending of a file from names": names(func(s string) string { return strings.TrimSuffix(s, ".mcpb") }),
		"drops npm: from names":                 names(func(s string) string { return strings.TrimPrefix(s, "npm:") }),
		"takes a version of white space for none": versions(func(v string) string {
			if v != "" && strings.TrimSpace(v) == "" {
				return ""
			}
			return v
		}),
		"takes stable for a version":        versions(latest("stable", "newest", "current")),
		"decodes percent signs of versions": versions(decoded),
		"ends versions at a NUL":            versions(upTo("\x00")),
		"ignores a V before a version":      versions(func(v string) string { return strings.TrimPrefix(v, "V") }),
		"compares versions by their numbers": versions(func(v string) string {
			return regexp.MustCompile(`\.0+([0-9])`).ReplaceAllString(v, ".$1")
		}),
		"takes x86_64 for amd64": platforms(func(r registry.Ref) registry.Ref {
			r.Arch = cmp.Or(map[string]string{"x86_64": "amd64", "aarch64": "arm64"}[r.Arch], r.Arch)
			return r
		}),
		"trims platforms": platforms(func(r registry.Ref) registry.Ref {
			r.OS, r.Arch = strings.TrimSpace(r.OS), strings.TrimSpace(r.Arch)
			return r
		}),
		"takes no platform for its own": platforms(func(r registry.Ref) registry.Ref {
			r.OS, r.Arch = cmp.Or(r.OS, "linux"), cmp.Or(r.Arch, "amd64")
			return r
		}),
		"decodes percent signs of artifacts": artifacts(decoded),
		"ends artifacts at a NUL":            artifacts(upTo("\x00")),
		"takes a backslash in an artifact for a slash": artifacts(func(s string) string {
			return strings.ReplaceAll(s, `\`, "/")
		}),
		"finds the file of a package without an artifact": {artifact, altered{fetch: func(c *catalog, pkg registry.Package) (io.ReadCloser, error) {
			if pkg.Artifact == "" {
				known, err := c.Resolve(context.Background(), registry.Ref{Name: pkg.Name, Version: pkg.Version, OS: "linux", Arch: "amd64"})
				pkg = known
				if err != nil {
					return nil, err
				}
			}
			return c.Fetch(context.Background(), pkg)
		}}},
	}
}

// textLies find what does not have the text, or fail for a text.
func textLies() map[string]wrongAbout {
	const whole, kind = "a search fits the whole text and no part of it", "a package has what its kind needs"
	packages := func(change func(*registry.Package)) wrongAbout {
		return wrongAbout{kind, altered{resolve: func(_ *catalog, _ registry.Ref, pkg registry.Package) registry.Package { change(&pkg); return pkg }}}
	}
	return map[string]wrongAbout{
		"finds any word of a text": {whole, finds(func(name, text string) bool {
			for _, word := range strings.Fields(text) {
				if strings.Contains(name, word) {
					return true
				}
			}
			return false
		})},
		"cuts texts at 64 characters": {whole, finds(func(name, text string) bool {
			return strings.Contains(name, strings.TrimSpace(text[:min(len(text), 64)]))
		})},
		"ends texts at a NUL": {whole, finds(func(name, text string) bool { return strings.Contains(name, upTo("\x00")(text)) })},
		"takes a minus for without": {whole, finds(func(name, text string) bool {
			without, ok := strings.CutPrefix(text, "-")
			return strings.Contains(name, text) || ok && !strings.Contains(name, without)
		})},
		"takes OR for an operator": {whole, finds(func(name, text string) bool {
			one, other, ok := strings.Cut(text, " OR ")
			return strings.Contains(name, one) || ok && strings.Contains(name, other)
		})},
		"fails for quotes": {"any text can be searched for", fails(func(text string) bool { return strings.ContainsAny(text, `'"`) })},
		"fails for other alphabets": {"any text can be searched for", fails(func(text string) bool {
			return strings.ContainsFunc(text, func(c rune) bool { return c > 0x7f })
		})},
		"fails for texts over 1 KiB": {"any text can be searched for", fails(func(text string) bool { return len(text) > 1024 })},
		"fails for percent signs": {"any text can be searched for", fails(func(text string) bool {
			_, err := url.QueryUnescape(text)
			return err != nil
		})},
		"names the latest version of an npm package": packages(func(p *registry.Package) {
			if p.Kind == registry.KindNPM {
				p.IdentifierVersion = "latest"
			}
		}),
		"names a range of versions of an npm package": packages(func(p *registry.Package) {
			if p.Kind == registry.KindNPM {
				p.IdentifierVersion = "1.x"
			}
		}),
		"has the version in the identifier of an npm package": packages(func(p *registry.Package) {
			if p.Kind == registry.KindNPM {
				p.Identifier += "@" + p.IdentifierVersion
			}
		}),
		"has the version in the identifier of a PyPI package": packages(func(p *registry.Package) {
			if p.Kind == registry.KindPyPI {
				p.Identifier += "==" + p.IdentifierVersion
			}
		}),
	}
}

func decoded(s string) string {
	if plain, err := url.PathUnescape(s); err == nil {
		return plain
	}
	return s
}

func upTo(end string) func(string) string {
	return func(s string) string { before, _, _ := strings.Cut(s, end); return before }
}

// finds is a catalog whose searches for a text find the bundles whose name fits it.
func finds(fits func(name, text string) bool) altered {
	return altered{search: func(c *catalog, q registry.Query, page registry.Page) registry.Page {
		if q.Text == "" {
			return page
		}
		page = registry.Page{}
		skip, _ := strconv.Atoi(q.Cursor)
		for i, p := range c.latest {
			if i >= skip && fits(p.Name, q.Text) && len(page.Entries) < cmp.Or(q.Limit, registry.DefaultLimit) {
				page.Entries = append(page.Entries, registry.Entry{Name: p.Name, Version: p.Version})
			}
		}
		return page
	}}
}

// fails is a catalog whose searches for some texts fail.
func fails(when func(text string) bool) altered {
	return altered{refuse: func(q registry.Query) error {
		if when(q.Text) {
			return errors.Join(plugins.ErrInvalid, errors.New("syntax error"))
		}
		return nil
	}}
}
