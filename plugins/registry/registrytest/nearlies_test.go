package registrytest_test

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// wrongAbout is an altered catalog and the check that must catch it.
type wrongAbout = struct {
	check string
	lie   altered
}

// pagingLies are wrong about the pages of searches.
func pagingLies() map[string]wrongAbout {
	const text, size = "the pages of a search for a text hold what one large page holds", "pages of the default size hold what one large page holds"
	const turn, once, pattern = "searches that are read in turn do not disturb each other", "searches at once each have their own pages", "a text is not a pattern"
	return map[string]wrongAbout{
		"forgets the text after the first page": {text, altered{search: func(_ *catalog, q registry.Query, page registry.Page) registry.Page {
			if q.Text != "" && q.Cursor == "" && page.NextCursor != "" {
				page.NextCursor = strconv.Itoa(len(page.Entries)) // the place among all bundles
			}
			return page
		}, query: func(q registry.Query) registry.Query {
			if q.Cursor != "" {
				q.Text = ""
			}
			return q
		}}},
		"begins a search for a text again at each page": {text, altered{query: func(q registry.Query) registry.Query {
			if q.Text != "" {
				q.Cursor = ""
			}
			return q
		}}},
		"has one page only of a search for a text": {text, altered{search: func(_ *catalog, q registry.Query, page registry.Page) registry.Page {
			if q.Text != "" {
				page.NextCursor = ""
			}
			return page
		}}},
		"loses the last bundle of a search for a text": {text, altered{search: func(_ *catalog, q registry.Query, page registry.Page) registry.Page {
			if n := len(page.Entries); q.Text != "" && q.Cursor != "" && page.NextCursor == "" {
				page.Entries = page.Entries[:max(n-1, 0)]
			}
			return page
		}}},
		"loses the bundle after a page of the default size":     {size, altered{search: moved(1)}},
		"repeats the last bundle of a page of the default size": {size, altered{search: moved(-1)}},
		"has one page of the default size only": {size, altered{search: func(_ *catalog, q registry.Query, page registry.Page) registry.Page {
			if q.Limit == 0 {
				page.NextCursor = ""
			}
			return page
		}}},
		"keeps the place of one search only":            {turn, onePlace()},
		"ends a search when another one begins":         {turn, endsOthers()},
		"keeps the limit of the search that began last": {once, oneLimit()},
		"takes a text for a regular expression": {pattern, matches(func(text string) *regexp.Regexp {
			expression, _ := regexp.Compile(text)
			return expression
		})},
		"takes a text for a pattern of SQL": {pattern, matches(func(text string) *regexp.Regexp {
			return regexp.MustCompile(strings.NewReplacer("%", ".*", "_", ".").Replace(regexp.QuoteMeta(text)))
		})},
		"takes a text for a pattern of files": {pattern, matches(func(text string) *regexp.Regexp {
			return regexp.MustCompile(strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(text)))
		})},
		"takes limits modulo 256": {"a limit over 100 is invalid, however large", altered{query: func(q registry.Query) registry.Query {
			q.Limit &= 255
			return q
		}}},
		"cuts limits at 100": {"a limit over 100 is invalid, however large", altered{query: func(q registry.Query) registry.Query {
			q.Limit = min(q.Limit, registry.MaxLimit)
			return q
		}}},
	}
}

// moved has the second page of the default size begin elsewhere.
func moved(by int) func(*catalog, registry.Query, registry.Page) registry.Page {
	return func(_ *catalog, q registry.Query, page registry.Page) registry.Page {
		if n, err := strconv.Atoi(page.NextCursor); q.Limit == 0 && q.Cursor == "" && err == nil {
			page.NextCursor = strconv.Itoa(n + by)
		}
		return page
	}
}

// onePlace answers every cursor with what follows the page that was given last.
func onePlace() altered {
	var mu sync.Mutex
	place := 0
	return altered{query: func(q registry.Query) registry.Query {
		mu.Lock()
		defer mu.Unlock()
		if q.Cursor == "" {
			place = 0
		}
		q.Cursor = strconv.Itoa(place)
		place += cmp.Or(q.Limit, registry.DefaultLimit)
		return q
	}}
}

// endsOthers answers a cursor with an empty last page once a search of another limit has begun.
func endsOthers() altered {
	var mu sync.Mutex
	current := 0
	return altered{search: func(_ *catalog, q registry.Query, page registry.Page) registry.Page {
		mu.Lock()
		defer mu.Unlock()
		if q.Cursor == "" {
			current = q.Limit
		}
		if q.Limit != current {
			return registry.Page{}
		}
		return page
	}}
}

// oneLimit keeps the limit of a search in a field that all calls share.
func oneLimit() altered {
	var mu sync.Mutex
	limit := 0
	return altered{search: func(c *catalog, q registry.Query, _ registry.Page) registry.Page {
		mu.Lock()
		limit = q.Limit
		mu.Unlock()
		time.Sleep(time.Millisecond) //nolint:forbidigo // of the fake clock: until every other call has come this far
		mu.Lock()
		defer mu.Unlock()
		skip, _ := strconv.Atoi(q.Cursor)
		page, _ := c.Search(context.Background(), registry.Query{Text: q.Text, Cursor: q.Cursor, Limit: limit})
		if page.NextCursor != "" {
			page.NextCursor = strconv.Itoa(skip + q.Limit)
		}
		return page
	}}
}

// matches finds the bundles whose name an expression fits.
func matches(compile func(string) *regexp.Regexp) altered {
	return altered{search: func(c *catalog, q registry.Query, page registry.Page) registry.Page {
		expression := compile(q.Text)
		if q.Text == "" || expression == nil {
			return page
		}
		for _, p := range c.latest {
			if expression.MatchString(p.Name) && len(page.Entries) < registry.MaxLimit {
				page.Entries = append(page.Entries, registry.Entry{Name: p.Name, Version: p.Version})
			}
		}
		return page
	}}
}

// nearLies take what is almost right for right.
func nearLies() map[string]wrongAbout {
	const name, version = "a name that is almost that of a bundle is not found", "a version that is almost that of a bundle is not found"
	const platform, artifact = "a platform that is almost that of a bundle is not found", "an artifact that is almost one that Resolve gave is an error"
	names := func(same func(asked, name string) bool) wrongAbout {
		return wrongAbout{name, altered{askIn: func(c *catalog, r registry.Ref) registry.Ref {
			if i := slices.IndexFunc(c.latest, func(p registry.Package) bool { return same(r.Name, p.Name) }); i >= 0 {
				r.Name = c.latest[i].Name
			}
			return r
		}}}
	}
	versions := func(change func(string) string) wrongAbout {
		return wrongAbout{version, altered{ask: func(r registry.Ref) registry.Ref {
			r.Version = change(r.Version)
			return r
		}}}
	}
	platforms := func(change func(registry.Ref) registry.Ref) wrongAbout {
		return wrongAbout{platform, altered{ask: change}}
	}
	artifacts := func(change func(string) string) wrongAbout {
		return wrongAbout{artifact, altered{fetch: func(c *catalog, pkg registry.Package) (io.ReadCloser, error) {
			pkg.Artifact = change(pkg.Artifact)
			return c.Fetch(context.Background(), pkg)
		}}}
	}
	const files = "https://files.example/"
	return map[string]wrongAbout{
		"resolves the beginning of a name":   names(func(asked, name string) bool { return len(asked) > 3 && strings.HasPrefix(name, asked) }),
		"resolves whatever begins as a name": names(func(asked, name string) bool { return strings.HasPrefix(asked, name) }),
		"ignores the case of names":          names(strings.EqualFold),
		"trims names":                        names(func(asked, name string) bool { return strings.TrimSpace(asked) == name }),
		"resolves names without their scope": names(func(asked, name string) bool { return asked != "" && path.Base(name) == asked }),
		"cleans names as paths":              names(func(asked, name string) bool { return asked != "" && strings.Trim(path.Clean(asked), "/") == name }),
		"takes the version out of a name":    names(func(asked, name string) bool { return strings.HasPrefix(asked, name+"@") }),
		"takes latest for a version": versions(func(v string) string {
			if strings.EqualFold(v, "latest") {
				return ""
			}
			return v
		}),
		"ignores a v before a version": versions(func(v string) string { return strings.TrimPrefix(v, "v") }),
		"ignores build metadata":       versions(func(v string) string { before, _, _ := strings.Cut(v, "+"); return before }),
		"trims versions":               versions(strings.TrimSpace),
		"takes ranges for versions":    versions(func(v string) string { return strings.TrimLeft(v, "~=>") }),
		"completes versions": versions(func(v string) string {
			if v != "" && strings.Count(v, ".") < 2 {
				return v + strings.Repeat(".0", 2-strings.Count(v, "."))
			}
			return v
		}),
		"compares systems by prefix": platforms(func(r registry.Ref) registry.Ref {
			if strings.HasPrefix(r.OS, "linu") {
				r.OS = "linux"
			}
			return r
		}),
		"ignores the case of platforms": platforms(func(r registry.Ref) registry.Ref {
			r.OS, r.Arch = strings.ToLower(r.OS), strings.ToLower(r.Arch)
			return r
		}),
		"takes an unknown architecture for amd64": platforms(func(r registry.Ref) registry.Ref {
			if !slices.Contains([]string{"arm64", "mips"}, r.Arch) {
				r.Arch = "amd64"
			}
			return r
		}),
		"takes an unknown system for linux": platforms(func(r registry.Ref) registry.Ref {
			if r.OS != "windows" {
				r.OS = "linux"
			}
			return r
		}),
		"trims artifacts":                   artifacts(strings.TrimSpace),
		"drops the query of an artifact":    artifacts(func(a string) string { before, _, _ := strings.Cut(a, "?"); return before }),
		"drops the fragment of an artifact": artifacts(func(a string) string { before, _, _ := strings.Cut(a, "#"); return before }),
		"cleans artifacts as paths":         artifacts(func(a string) string { return files + path.Clean("/" + strings.TrimPrefix(a, files))[1:] }),
		"ignores the case of artifacts":     artifacts(strings.ToLower),
		"serves the newest file for every version": {"each version of a known bundle has bytes of its own", altered{resolve: func(_ *catalog, _ registry.Ref, pkg registry.Package) registry.Package {
			pkg.SHA256, pkg.Size = "", 0
			return pkg
		}, fetch: func(c *catalog, pkg registry.Package) (io.ReadCloser, error) {
			pkg.Artifact = strings.NewReplacer("/1.0.0/", "/2.0.0/", "/1.9.0/", "/2.0.0/").Replace(pkg.Artifact)
			return c.Fetch(context.Background(), pkg)
		}}},
		"has other bytes than it promised for one bundle of many": {"every bundle that can be fetched has the bytes that were promised", altered{fetch: func(c *catalog, pkg registry.Package) (io.ReadCloser, error) {
			if strings.Contains(pkg.Artifact, "f-more-09") {
				return io.NopCloser(bytes.NewReader(make([]byte, pkg.Size))), nil
			}
			return c.Fetch(context.Background(), pkg)
		}}},
		"delivers downloads whose deadline has passed": {"a download whose deadline has passed is an error", altered{fetch: func(c *catalog, pkg registry.Package) (io.ReadCloser, error) {
			return c.Fetch(context.Background(), pkg)
		}}},
		"answers not found to downloads whose deadline has passed": {"a download whose deadline has passed is an error", altered{lateFetch: plugins.ErrNotFound}},
	}
}
