package registrytest_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
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

// backend is what a catalog needs to work, as a kit.Meter.
type backend struct {
	sent    atomic.Int64
	mu      sync.Mutex
	away    bool
	slow    bool
	stalled chan struct{}
}

func (b *backend) Stop(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.away = true
	return nil
}

func (b *backend) Stall(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stalled = make(chan struct{})
	return nil
}

func (b *backend) Start(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.away, b.slow = false, false
	if b.stalled != nil {
		close(b.stalled)
		b.stalled = nil
	}
	return nil
}

func (b *backend) Slow(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.slow = true
	return nil
}

func (b *backend) Sent() int64 { return b.sent.Load() }

// read is a read of what the backend sends.
func (b *backend) read(from io.Reader, p []byte) (int, error) {
	b.mu.Lock()
	slow := b.slow
	b.mu.Unlock()
	p = p[:min(len(p), 1000)]
	if slow {
		time.Sleep(time.Second * time.Duration(len(p)) / kit.SlowPace) //nolint:forbidigo // the pace of the backend
	}
	n, err := from.Read(p)
	b.sent.Add(int64(n))
	return n, err
}

// ask returns once the backend has answered, and an error when it does not.
func (b *backend) ask(ctx context.Context) error {
	b.mu.Lock()
	away, stalled := b.away, b.stalled
	b.mu.Unlock()
	if away {
		return plugins.ErrUnavailable
	}
	if stalled == nil {
		return nil
	}
	select {
	case <-stalled:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", plugins.ErrUnavailable, ctx.Err())
	}
}

// remote is an honest catalog with a backend, but for what is set.
type remote struct {
	*catalog
	backend   *backend
	asks      func(context.Context, *backend) error // in place of backend.ask
	searches  func(error) (registry.Page, error)    // answers a search that failed
	resolves  error                                 // of a resolve that failed
	fetches   error                                 // of a download that failed
	breaksOff func(read io.Reader, b *backend) io.Reader
	gaveUp    func(read io.Reader) // does what remains of a download that was given up
}

func (r remote) ask(ctx context.Context) error {
	if r.asks != nil {
		return r.asks(ctx, r.backend)
	}
	return r.backend.ask(ctx)
}

func (r remote) Search(ctx context.Context, q registry.Query) (registry.Page, error) {
	if err := r.ask(ctx); err != nil {
		if r.searches != nil {
			return r.searches(err)
		}
		return registry.Page{}, err
	}
	return r.catalog.Search(ctx, q)
}

func (r remote) Resolve(ctx context.Context, ref registry.Ref) (registry.Package, error) {
	if err := r.ask(ctx); err != nil {
		return registry.Package{}, cmp.Or(r.resolves, err)
	}
	return r.catalog.Resolve(ctx, ref)
}

func (r remote) Fetch(ctx context.Context, pkg registry.Package) (io.ReadCloser, error) {
	if err := r.ask(ctx); err != nil {
		return nil, cmp.Or(r.fetches, err)
	}
	body, err := r.catalog.Fetch(ctx, pkg)
	if err != nil {
		return nil, err
	}
	read := io.Reader(whileThere{body, r.backend})
	if r.breaksOff != nil {
		read = r.breaksOff(body, r.backend)
	}
	return &underway{Reader: read, ctx: ctx, gaveUp: r.gaveUp}, nil
}

// underway is a download, which ends with its context.
type underway struct {
	io.Reader
	ctx    context.Context
	gaveUp func(io.Reader)
}

func (u *underway) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.Reader.Read(p)
}

func (u *underway) Close() error {
	if u.ctx.Err() != nil && u.gaveUp != nil {
		u.gaveUp(u.Reader)
	}
	return nil
}

// whileThere reads as long as the backend is there.
type whileThere struct {
	io.Reader
	backend *backend
}

func (w whileThere) Read(p []byte) (int, error) {
	if err := w.backend.ask(context.Background()); err != nil {
		return 0, err
	}
	return w.backend.read(w.Reader, p)
}

// endsEarly takes the end of a connection for the end of a file.
type endsEarly struct{ whileThere }

func (e endsEarly) Read(p []byte) (int, error) {
	n, err := e.whileThere.Read(p)
	if errors.Is(err, plugins.ErrUnavailable) {
		return n, io.EOF
	}
	return n, err
}

func outageLies() map[string]struct {
	check string
	lie   remote
} {
	type l = struct {
		check string
		lie   remote
	}
	const late, again, up = "calls to a backend that does not answer return by their deadline", "once the backend is back the registry works again", "calls that were given up use nothing up"
	const ends = "a download that was given up ends"
	return map[string]l{
		"finds nothing while its backend is away":                     {"a search without its backend is unavailable, never an empty page", remote{searches: func(error) (registry.Page, error) { return registry.Page{}, nil }}},
		"answers not found to searches while its backend is away":     {"a search without its backend is unavailable, never an empty page", remote{searches: func(error) (registry.Page, error) { return registry.Page{}, plugins.ErrNotFound }}},
		"takes a backend that is away for a bundle that is not there": {"a resolve without its backend is unavailable, never not found", remote{resolves: plugins.ErrNotFound}},
		"takes a backend that is away for a bad name":                 {"a resolve without its backend is unavailable, never not found", remote{resolves: plugins.ErrInvalid}},
		"takes a backend that is away for a file that is not there":   {"a download without its backend is unavailable, never not found", remote{fetches: plugins.ErrNotFound}},
		"takes the end of a connection for the end of a file":         {"a download whose backend goes away is not complete", remote{breaksOff: func(read io.Reader, b *backend) io.Reader { return endsEarly{whileThere{read, b}} }}},
		"waits for its backend whatever the deadline is":              {late, remote{asks: func(_ context.Context, b *backend) error { return b.ask(context.Background()) }}},
		"takes a slow backend for a bundle that is not there": {late, remote{asks: func(ctx context.Context, b *backend) error {
			if err := b.ask(ctx); err != nil {
				return plugins.ErrNotFound
			}
			return nil
		}}},
		"reads the rest of a download that was given up":    {ends, remote{gaveUp: func(read io.Reader) { go func() { _, _ = io.Copy(io.Discard, read) }() }}},
		"returns from a download only when it is whole":     {ends, remote{gaveUp: func(read io.Reader) { _, _ = io.Copy(io.Discard, read) }}},
		"does not look again for a backend that was away":   {again, remote{asks: onceAway()}},
		"keeps a connection of each call that was given up": {up, remote{asks: keepsConnections()}},
	}
}

func onceAway() func(context.Context, *backend) error {
	var mu sync.Mutex
	gone := false
	return func(ctx context.Context, b *backend) error {
		err := b.ask(ctx)
		mu.Lock()
		defer mu.Unlock()
		if gone = gone || err != nil; gone {
			return plugins.ErrUnavailable
		}
		return nil
	}
}

// keepsConnections has ten connections, and does not get one back from a call that was given up.
func keepsConnections() func(context.Context, *backend) error {
	made := sync.OnceValue(func() chan struct{} { return make(chan struct{}, 10) }) // by the first call, on its clock
	return func(ctx context.Context, b *backend) error {
		connections := made()
		select {
		case connections <- struct{}{}:
		case <-ctx.Done():
			return plugins.ErrUnavailable
		}
		if err := b.ask(ctx); err != nil {
			return err
		}
		<-connections
		return nil
	}
}
