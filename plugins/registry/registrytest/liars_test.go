package registrytest_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
	"github.com/ropewalk/ropewalk/plugins/registry"
	"github.com/ropewalk/ropewalk/plugins/registry/registrytest"
)

// The names of the properties.
const (
	searching   = "every search finds what the model finds, on pages of every size"
	resolving   = "every name, version and platform resolves as in the model"
	downloading = "every download is the whole file, and only what Resolve returned can be downloaded"
	changing    = "published and withdrawn bundles show up, even while pages are being read"
	failing     = "a failing backend changes no result"
	givingUp    = "abandoned calls end, and cost nothing"
)

// lie is a small change to a correct registry.
type lie struct {
	lie, property string
	change        func(*plugin)
}

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
		p.pack = func(_ context.Context, pkg *registry.Package) error { return nil }
		choose := p.resolve
		p.resolve = func(ctx context.Context, ref registry.Ref) (registry.Package, error) {
			pkg, err := choose(ctx, ref)
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

// bodies changes what is downloaded.
func bodies(change func(ctx context.Context, body io.ReadCloser) io.ReadCloser) func(*plugin) {
	return func(p *plugin) { p.body = change }
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

func lies() []lie {
	var mu sync.Mutex
	var last string
	return []lie{
		{"lists 100 bundles at most", searching, func(p *plugin) {
			p.index = func(ctx context.Context) ([]bundle, error) {
				all, err := p.all(ctx)
				return all[:min(len(all), 100)], err
			}
		}},
		{"has one entry more on a page than it may", searching, func(p *plugin) {
			p.page = func(found []bundle, q registry.Query) registry.Page { q.Limit++; return pageByName(found, q) }
		}},
		{"has 25 entries on a page without a limit", searching, first(func(q *registry.Query) { q.Limit = cmp.Or(q.Limit, 25) })},
		{"repeats the last bundle of a full page", searching, func(p *plugin) {
			p.page = func(found []bundle, q registry.Query) registry.Page {
				page := pageByName(found, q)
				if len(page.NextCursor) > 1 && q.Limit > 1 {
					page.NextCursor = page.NextCursor[:len(page.NextCursor)-1]
				}
				return page
			}
		}},
		{"loses a bundle at the end of a page", searching, func(p *plugin) {
			p.page = func(found []bundle, q registry.Query) registry.Page {
				page := pageByName(found, q)
				if page.NextCursor != "" && q.Limit > 1 {
					page.Entries = page.Entries[:q.Limit-1]
				}
				return page
			}
		}},
		{"begins again at the end", searching, func(p *plugin) {
			p.page = func(found []bundle, q registry.Query) registry.Page {
				page := pageByName(found, q)
				page.NextCursor = cmp.Or(page.NextCursor, " ")
				return page
			}
		}},
		{"keeps the place of the search that was read last", searching, func(p *plugin) {
			p.page = func(found []bundle, q registry.Query) registry.Page {
				mu.Lock()
				defer mu.Unlock()
				if q.Cursor != "" {
					q.Cursor = last
				}
				page := pageByName(found, q)
				last = page.NextCursor
				return page
			}
		}},
		{"keeps the places of 16 searches", searching, func(p *plugin) {
			var places []string
			p.page = func(found []bundle, q registry.Query) registry.Page {
				mu.Lock()
				defer mu.Unlock()
				if q.Cursor != "" && !slices.Contains(places, q.Cursor) {
					return registry.Page{}
				}
				page := pageByName(found, q)
				if page.NextCursor != "" {
					page.NextCursor += " " + rand.Text() // a place of its own for each search
					places = append(places, page.NextCursor)
				}
				places = places[max(0, len(places)-16):]
				return page
			}
		}},
		{"takes a limit over 100 for 100", searching, func(p *plugin) { p.check = func(registry.Query) error { return nil } }},
		{"finds any word of a text", searching, fits(func(b bundle, text string) bool {
			return slices.ContainsFunc(strings.Fields(text), func(word string) bool { return strings.Contains(b.Name, word) })
		})},
		{"takes a text for a regular expression", searching, fits(func(b bundle, text string) bool {
			found, err := regexp.MatchString("(?i)"+text, b.Name)
			return found && err == nil
		})},
		{"takes a text for a pattern of files", searching, fits(func(b bundle, text string) bool {
			found, err := path.Match(text, strings.ReplaceAll(b.Name, "/", "-"))
			return found && err == nil
		})},
		{"cuts texts at 64 characters", searching, first(func(q *registry.Query) { q.Text = q.Text[:min(len(q.Text), 64)] })},
		{"ends texts at a NUL", searching, first(func(q *registry.Query) { q.Text, _, _ = strings.Cut(q.Text, "\x00") })},
		{"fails for quotes", searching, func(p *plugin) {
			p.search = func(ctx context.Context, q registry.Query) (registry.Page, error) {
				if strings.ContainsAny(q.Text, `'"`) {
					return registry.Page{}, errors.New("syntax error")
				}
				return p.find(ctx, q)
			}
		}},
		{"does not find what has a capital letter", searching, first(func(q *registry.Query) {
			if strings.HasPrefix(q.Text, "@A") {
				q.Text = strings.ToLower(q.Text) + "!"
			}
		})},
		{"lists the oldest version", searching, func(p *plugin) {
			p.entry = func(b bundle) registry.Entry {
				return registry.Entry{Name: b.Name, Version: b.Versions[len(b.Versions)-1].Version}
			}
		}},
		{"shows the title of the bundle before", searching, func(p *plugin) {
			p.entry = func(b bundle) registry.Entry {
				mu.Lock()
				defer mu.Unlock()
				e := registry.Entry{Name: b.Name, Title: last, Version: b.Versions[0].Version}
				last = b.Title
				return e
			}
		}},

		{"compares versions as text", resolving, func(p *plugin) {
			p.compare = func(a, b version) int { return strings.Compare(b.Version, a.Version) }
		}},
		{"takes a prerelease for the latest", resolving, func(p *plugin) {
			p.compare = func(a, b version) int { return -strings.Compare(a.Version+"~", b.Version+"~") }
		}},
		{"ignores the case of names", resolving, names(strings.ToLower)},
		{"takes _ for - in names", resolving, names(func(name string) string { return strings.ReplaceAll(name, "_", "-") })},
		{"trims names", resolving, names(strings.TrimSpace)},
		{"cleans names as paths", resolving, names(path.Clean)},
		{"resolves names without their scope", resolving, names(path.Base)},
		{"takes the version out of a name", resolving, asked(func(ref *registry.Ref) {
			if at := strings.LastIndexByte(ref.Name, '@'); at > 0 {
				ref.Name = ref.Name[:at]
			}
		})},
		{"completes versions", resolving, versions(func(has, asked string) bool { return strings.HasPrefix(has, asked+".") })},
		{"ignores a v before a version", resolving, versions(func(has, asked string) bool { return "v"+has == asked })},
		{"ignores build metadata", resolving, versions(func(has, asked string) bool { before, _, _ := strings.Cut(asked, "+"); return before == has })},
		{"takes latest for a version", resolving, asked(func(ref *registry.Ref) {
			if ref.Version == "latest" {
				ref.Version = ""
			}
		})},
		{"answers with the newest version whatever is asked for", resolving, asked(func(ref *registry.Ref) { ref.Version = "" })},
		{"ignores the architecture", resolving, func(p *plugin) { p.runs = func(f file, os, _ string) bool { return f.OS == "" || f.OS == os } }},
		{"answers with amd64 where arm64 emulates it", resolving, func(p *plugin) {
			runs := p.runs
			p.runs = func(f file, os, arch string) bool { return runs(f, os, arch) || os == "darwin" && runs(f, os, "amd64") }
		}},
		{"takes x86_64 for amd64", resolving, asked(func(ref *registry.Ref) { ref.Arch = strings.Replace(ref.Arch, "x86_64", "amd64", 1) })},
		{"takes every unknown system for linux", resolving, asked(func(ref *registry.Ref) {
			if !slices.Contains([]string{"darwin", "windows"}, ref.OS) {
				ref.OS = "linux"
			}
		})},
		{"counts a byte too many", resolving, packs(func(pkg *registry.Package) { pkg.Size++ })},
		{"writes digests in capitals", resolving, packs(func(pkg *registry.Package) { pkg.SHA256 = strings.ToUpper(pkg.SHA256) })},
		{"keeps what it resolved by name alone", resolving, func(p *plugin) {
			kept := map[string]registry.Package{}
			p.resolve = func(ctx context.Context, ref registry.Ref) (registry.Package, error) {
				mu.Lock()
				defer mu.Unlock()
				if pkg, ok := kept[ref.Name]; ok {
					return pkg, nil
				}
				pkg, err := p.choose(ctx, ref)
				if err == nil {
					kept[ref.Name] = pkg
				}
				return pkg, err
			}
		}},

		{"trims artifacts", downloading, artifacts(func(has, asked string) bool { return has == strings.TrimSpace(asked) })},
		{"finds artifacts by their beginning", downloading, artifacts(strings.HasPrefix)},
		{"cleans artifacts as paths", downloading, artifacts(func(has, asked string) bool { return has == path.Base(asked) })},
		{"opens whatever address an artifact is", downloading, func(p *plugin) {
			p.fetch = func(ctx context.Context, pkg registry.Package) (io.ReadCloser, error) {
				if r, err := http.NewRequestWithContext(ctx, http.MethodGet, pkg.Artifact, nil); err == nil && strings.HasPrefix(pkg.Artifact, "http:") {
					if answer, err := p.client.Do(r); err == nil {
						_ = answer.Body.Close()
					}
				}
				return p.open(ctx, pkg)
			}
		}},
		{"delivers a megabyte at most", downloading, bodies(func(_ context.Context, body io.ReadCloser) io.ReadCloser {
			return struct {
				io.Reader
				io.Closer
			}{io.LimitReader(body, 1<<20), body}
		})},
		{"leaves the last byte out", downloading, bodies(func(_ context.Context, body io.ReadCloser) io.ReadCloser {
			all := whole(body)
			return io.NopCloser(io.LimitReader(all, int64(all.Len()-1)))
		})},
		{"shares one buffer between downloads", downloading, func(p *plugin) {
			var shared bytes.Buffer
			p.body = func(_ context.Context, body io.ReadCloser) io.ReadCloser {
				all := whole(body)
				mu.Lock()
				defer mu.Unlock()
				_, _ = all.WriteTo(&shared)
				return io.NopCloser(strings.NewReader(shared.String()))
			}
		}},

		{"reads the index once", changing, keeps(func(kept []bundle, _ error) bool { return len(kept) == 0 })},
		{"never forgets a version", changing, func(p *plugin) {
			seen := map[string]version{}
			p.index = func(ctx context.Context) ([]bundle, error) {
				all, err := p.all(ctx)
				mu.Lock()
				defer mu.Unlock()
				for i, b := range all {
					for _, v := range b.Versions {
						seen[b.Name+" "+v.Version] = v
					}
					for key, v := range seen {
						if strings.HasPrefix(key, b.Name+" ") && !slices.ContainsFunc(b.Versions, func(has version) bool { return has.Version == v.Version }) {
							all[i].Versions = append(all[i].Versions, v)
						}
					}
					slices.SortStableFunc(all[i].Versions, p.compare)
				}
				return all, err
			}
		}},
		{"begins again when the catalogue has changed", changing, func(p *plugin) {
			size := 0
			p.page = func(found []bundle, q registry.Query) registry.Page {
				mu.Lock()
				defer mu.Unlock()
				if q.Cursor != "" && size != len(found) {
					q.Cursor = ""
				}
				size = len(found)
				return pageByName(found, q)
			}
		}},
		{"forgets cursors when the catalogue has changed", changing, func(p *plugin) {
			p.page = func(found []bundle, q registry.Query) (page registry.Page) {
				if q.Cursor != "" && !slices.ContainsFunc(found, func(b bundle) bool { return b.Name == q.Cursor }) {
					return page
				}
				return pageByName(found, q)
			}
		}},

		{"takes every error of a backend for a bundle that is not there", failing, statuses(func(int) error { return plugins.ErrNotFound })},
		{"takes a backend that wants a token for a bad one of the caller", failing, statuses(func(code int) error {
			if code == http.StatusUnauthorized {
				return plugins.ErrUnauthenticated
			}
			return plugins.ErrUnavailable
		})},
		{"takes an error page for a file", failing, statuses(func(int) error { return nil })},
		{"takes a backend that is away for an empty one", failing, func(p *plugin) {
			p.lost = func(error) error { return nil }
			p.index = func(ctx context.Context) (all []bundle, err error) {
				defer func() { _ = recover() }()
				return p.all(ctx)
			}
		}},
		{"answers an internal error when its backend is away", failing, func(p *plugin) { p.lost = func(err error) error { return err } }},
		{"takes the end of a connection for the end of a file", failing, bodies(func(_ context.Context, body io.ReadCloser) io.ReadCloser { return io.NopCloser(whole(body)) })},
		{"keeps errors for ever", failing, keeps(func(_ []bundle, err error) bool { return err == nil })},
		{"works digests out from what comes", failing, func(p *plugin) {
			p.pack = func(ctx context.Context, pkg *registry.Package) error {
				body, err := p.get(ctx, "/files/"+pkg.Artifact)
				if err != nil {
					return err
				}
				raw, err := io.ReadAll(body)
				_ = body.Close()
				sum := sha256.Sum256(raw)
				pkg.SHA256, pkg.Size = hex.EncodeToString(sum[:]), int64(len(raw))
				return plugins.Unavailable(err)
			}
		}},

		{"waits for its backend whatever the deadline is", givingUp, func(p *plugin) {
			p.get = func(ctx context.Context, path string) (io.ReadCloser, error) {
				return p.request(context.WithoutCancel(ctx), path)
			}
		}},
		{"ends all calls with the one that asked first", givingUp, func(p *plugin) {
			type flight struct {
				done context.Context
				all  []bundle
				err  error
			}
			var now *flight
			p.index = func(ctx context.Context) ([]bundle, error) {
				mu.Lock()
				if f := now; f != nil {
					mu.Unlock()
					<-f.done.Done()
					return f.all, f.err
				}
				done, end := context.WithCancel(context.Background())
				f := &flight{done: done}
				now = f
				mu.Unlock()
				defer end()
				f.all, f.err = p.all(ctx)
				mu.Lock()
				defer mu.Unlock()
				now = nil
				return f.all, f.err
			}
		}},
		{"answers not found when the time is over", givingUp, func(p *plugin) {
			p.lost = func(err error) error {
				if errors.Is(err, context.DeadlineExceeded) {
					return plugins.ErrNotFound
				}
				return plugins.Unavailable(err)
			}
		}},
		{"keeps a slot of each call that was given up", givingUp, func(p *plugin) {
			slots := make(chan struct{}, 20)
			p.get = func(ctx context.Context, path string) (io.ReadCloser, error) {
				select {
				case slots <- struct{}{}:
				case <-ctx.Done():
					return nil, plugins.Unavailable(ctx.Err())
				}
				body, err := p.request(ctx, path)
				if err == nil {
					<-slots
				}
				return body, err
			}
		}},
		{"reads the rest of a download that was given up", givingUp, func(p *plugin) {
			p.get = func(ctx context.Context, path string) (io.ReadCloser, error) {
				if path == "/index" {
					return p.request(ctx, path)
				}
				body, err := p.request(context.WithoutCancel(ctx), path)
				if err != nil {
					return nil, err
				}
				from, to := io.Pipe()
				go func() {
					defer func() { _ = body.Close() }()
					all, err := io.ReadAll(body)
					_, _ = to.Write(all)
					_ = to.CloseWithError(err)
				}()
				context.AfterFunc(ctx, func() { _ = from.CloseWithError(ctx.Err()) })
				return from, nil
			}
		}},
	}
}

func TestLiarsAreCaught(t *testing.T) {
	var all []plugintest.Liar[registrytest.Subject]
	for _, l := range lies() {
		all = append(all, plugintest.Liar[registrytest.Subject]{Lie: l.lie, Property: l.property, Open: func(t *testing.T) registrytest.Subject { return open(t, l.change) }})
	}
	plugintest.Liars(t, registrytest.Properties(), trial(), all)
}

func TestMessagesOfMoreThanAMegabyteAreCaught(t *testing.T) {
	s := open(t, func(*plugin) {})
	s.Registry = loud{s.Registry}
	downloads := registrytest.Properties()[2]
	if outcome := downloads.Judge(t.Context(), trial(), s); outcome.Verdict != kit.Fail {
		t.Errorf("%s %s", outcome.Verdict, outcome.Why)
	}
}

// loud is a registry that sends messages that are too large.
type loud struct{ registry.Registry }

func (l loud) Fetch(ctx context.Context, pkg registry.Package) (io.ReadCloser, error) {
	body, err := l.Registry.Fetch(ctx, pkg)
	if err != nil {
		return nil, err
	}
	return piece{body}, nil
}

type piece struct{ io.ReadCloser }

func (piece) LargestPiece() int { return 1<<20 + 1 }
