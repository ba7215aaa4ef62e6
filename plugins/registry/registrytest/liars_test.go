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
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
	"github.com/ropewalk/ropewalk/plugins/registry"
	"github.com/ropewalk/ropewalk/plugins/registry/registrytest"
)

func lies() plugintest.Lies[*plugin] {
	var mu sync.Mutex
	var last string
	return plugintest.Lies[*plugin]{
		registrytest.Searches: {
			"lists at most 100 bundles": func(p *plugin) {
				p.index = func(ctx context.Context) ([]bundle, error) {
					all, err := p.all(ctx)
					return all[:min(len(all), 100)], err
				}
			},
			"returns one entry too many on a page": pages(func(found []bundle, q registry.Query) registry.Page {
				q.Limit++
				return pageByName(found, q)
			}),
			"returns 25 entries on a page without a limit": first(func(q *registry.Query) { q.Limit = cmp.Or(q.Limit, 25) }),
			"repeats the last bundle of a full page": pages(func(found []bundle, q registry.Query) registry.Page {
				page := pageByName(found, q)
				if len(page.NextCursor) > 1 && q.Limit > 1 {
					page.NextCursor = page.NextCursor[:len(page.NextCursor)-1]
				}
				return page
			}),
			"drops a bundle at the end of a page": pages(func(found []bundle, q registry.Query) registry.Page {
				page := pageByName(found, q)
				if page.NextCursor != "" && q.Limit > 1 {
					page.Entries = page.Entries[:q.Limit-1]
				}
				return page
			}),
			"starts over at the end": pages(func(found []bundle, q registry.Query) registry.Page {
				page := pageByName(found, q)
				page.NextCursor = cmp.Or(page.NextCursor, " ")
				return page
			}),
			"keeps only the position of the latest search": pages(func(found []bundle, q registry.Query) registry.Page {
				mu.Lock()
				defer mu.Unlock()
				if q.Cursor != "" {
					q.Cursor = last
				}
				page := pageByName(found, q)
				last = page.NextCursor
				return page
			}),
			"keeps the positions of only 16 searches": func(p *plugin) {
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
			},
			"treats a limit over 100 as 100": func(p *plugin) { p.check = func(registry.Query) error { return nil } },
			"finds bundles with any word of a text": fits(func(b bundle, text string) bool {
				return slices.ContainsFunc(strings.Fields(text), func(word string) bool { return strings.Contains(b.Name, word) })
			}),
			"treats a text as a regular expression": fits(func(b bundle, text string) bool {
				found, err := regexp.MatchString("(?i)"+text, b.Name)
				return found && err == nil
			}),
			"treats a text as a file name pattern": fits(func(b bundle, text string) bool {
				found, err := path.Match(text, strings.ReplaceAll(b.Name, "/", "-"))
				return found && err == nil
			}),
			"truncates texts to 64 characters": first(func(q *registry.Query) { q.Text = q.Text[:min(len(q.Text), 64)] }),
			"truncates texts at a NUL":         first(func(q *registry.Query) { q.Text, _, _ = strings.Cut(q.Text, "\x00") }),
			"fails if a text contains quotes": func(p *plugin) {
				p.search = func(ctx context.Context, q registry.Query) (registry.Page, error) {
					if strings.ContainsAny(q.Text, `'"`) {
						return registry.Page{}, errors.New("syntax error")
					}
					return p.find(ctx, q)
				}
			},
			"does not find names with an upper-case letter": first(func(q *registry.Query) {
				if strings.HasPrefix(q.Text, "@A") {
					q.Text = strings.ToLower(q.Text) + "!"
				}
			}),
			"lists the oldest version": func(p *plugin) {
				p.entry = func(b bundle) registry.Entry {
					return registry.Entry{Name: b.Name, Version: b.Versions[len(b.Versions)-1].Version}
				}
			},
			"returns the title of the previous bundle": func(p *plugin) {
				p.entry = func(b bundle) registry.Entry {
					mu.Lock()
					defer mu.Unlock()
					e := registry.Entry{Name: b.Name, Title: last, Version: b.Versions[0].Version}
					last = b.Title
					return e
				}
			},
		},
		registrytest.Resolves: {
			"compares versions as text": func(p *plugin) {
				p.compare = func(a, b version) int { return strings.Compare(b.Version, a.Version) }
			},
			"mistakes a prerelease for the latest": func(p *plugin) {
				p.compare = func(a, b version) int { return -strings.Compare(a.Version+"~", b.Version+"~") }
			},
			"parses versions as 32-bit numbers": func(p *plugin) {
				wraps := func(v version) version {
					v.Version = regexp.MustCompile(`[0-9]{9,}`).ReplaceAllStringFunc(v.Version, func(digits string) string {
						n, _ := strconv.ParseUint(digits, 10, 64)
						return strconv.FormatUint(n&(1<<31-1), 10)
					})
					return v
				}
				p.compare = func(a, b version) int { return bySemver(wraps(a), wraps(b)) }
			},
			"ignores case when it compares prereleases": func(p *plugin) {
				p.compare = func(a, b version) int {
					a.Version, b.Version = strings.ToLower(a.Version), strings.ToLower(b.Version)
					return bySemver(a, b)
				}
			},
			"treats macos as darwin":             asked(func(ref *registry.Ref) { ref.OS = strings.Replace(ref.OS, "macos", "darwin", 1) }),
			"ignores the case of names":          names(strings.ToLower),
			"treats _ as - in names":             names(func(name string) string { return strings.ReplaceAll(name, "_", "-") }),
			"trims names":                        names(strings.TrimSpace),
			"cleans names as paths":              names(path.Clean),
			"resolves names without their scope": names(path.Base),
			"removes a version from a name": asked(func(ref *registry.Ref) {
				if at := strings.LastIndexByte(ref.Name, '@'); at > 0 {
					ref.Name = ref.Name[:at]
				}
			}),
			"completes versions":                versions(func(has, asked string) bool { return strings.HasPrefix(has, asked+".") }),
			"ignores a v in front of a version": versions(func(has, asked string) bool { return "v"+has == asked }),
			"ignores build metadata":            versions(func(has, asked string) bool { before, _, _ := strings.Cut(asked, "+"); return before == has }),
			"treats latest as a version": asked(func(ref *registry.Ref) {
				if ref.Version == "latest" {
					ref.Version = ""
				}
			}),
			"always returns the newest version": asked(func(ref *registry.Ref) { ref.Version = "" }),
			"ignores the architecture":          func(p *plugin) { p.runs = func(f file, os, _ string) bool { return f.OS == "" || f.OS == os } },
			"returns amd64 packages for arm64, which can emulate them": func(p *plugin) {
				runs := p.runs
				p.runs = func(f file, os, arch string) bool { return runs(f, os, arch) || os == "darwin" && runs(f, os, "amd64") }
			},
			"treats x86_64 as amd64": asked(func(ref *registry.Ref) { ref.Arch = strings.Replace(ref.Arch, "x86_64", "amd64", 1) }),
			"treats every unknown system as linux": asked(func(ref *registry.Ref) {
				if !slices.Contains([]string{"darwin", "windows"}, ref.OS) {
					ref.OS = "linux"
				}
			}),
			"reports a size one byte too large": packs(func(pkg *registry.Package) { pkg.Size++ }),
			"writes digests in upper case":      packs(func(pkg *registry.Package) { pkg.SHA256 = strings.ToUpper(pkg.SHA256) }),
			"caches resolved bundles by name only": func(p *plugin) {
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
			},
		},
		registrytest.Downloads: {
			"trims artifacts":                 artifacts(func(has, asked string) bool { return has == strings.TrimSpace(asked) }),
			"finds artifacts by their prefix": artifacts(strings.HasPrefix),
			"cleans artifacts as paths":       artifacts(func(has, asked string) bool { return has == path.Base(asked) }),
			"opens any address that is given as an artifact": func(p *plugin) {
				p.fetch = func(ctx context.Context, pkg registry.Package) (io.ReadCloser, error) {
					if r, err := http.NewRequestWithContext(ctx, http.MethodGet, pkg.Artifact, nil); err == nil && strings.HasPrefix(pkg.Artifact, "http:") {
						if answer, err := p.client.Do(r); err == nil {
							_ = answer.Body.Close()
						}
					}
					return p.open(ctx, pkg)
				}
			},
			"delivers at most a megabyte": bodies(func(_ context.Context, body io.ReadCloser) io.ReadCloser {
				return struct {
					io.Reader
					io.Closer
				}{io.LimitReader(body, 1<<20), body}
			}),
			"sends more than a megabyte in a message": bodies(func(_ context.Context, body io.ReadCloser) io.ReadCloser { return piece{body} }),
			"omits the last byte": bodies(func(_ context.Context, body io.ReadCloser) io.ReadCloser {
				all := whole(body)
				return io.NopCloser(io.LimitReader(all, int64(all.Len()-1)))
			}),
			"shares one buffer between downloads": func(p *plugin) {
				var shared bytes.Buffer
				p.body = func(_ context.Context, body io.ReadCloser) io.ReadCloser {
					all := whole(body)
					mu.Lock()
					defer mu.Unlock()
					_, _ = all.WriteTo(&shared)
					return io.NopCloser(strings.NewReader(shared.String()))
				}
			},
		},
		registrytest.Changes: {
			"reads the index only once": keeps(func(kept []bundle, _ error) bool { return len(kept) == 0 }),
			"never forgets a version": func(p *plugin) {
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
			},
			"starts over when the catalogue has changed": func(p *plugin) {
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
			},
			"forgets cursors when the catalogue has changed": pages(func(found []bundle, q registry.Query) (page registry.Page) {
				if q.Cursor != "" && !slices.ContainsFunc(found, func(b bundle) bool { return b.Name == q.Cursor }) {
					return page
				}
				return pageByName(found, q)
			}),
		},
		registrytest.Faults: {
			"reports every backend error as a missing bundle": statuses(func(int) error { return plugins.ErrNotFound }),
			"reports a backend that requires a token as an invalid token from the caller": statuses(func(code int) error {
				if code == http.StatusUnauthorized {
					return plugins.ErrUnauthenticated
				}
				return plugins.ErrUnavailable
			}),
			"reports an empty response as a missing bundle": statuses(func(code int) error {
				if code == http.StatusNoContent || code == http.StatusNotFound {
					return plugins.ErrNotFound
				}
				return plugins.ErrUnavailable
			}),
			"treats a redirect as a response": statuses(func(code int) error {
				if code < http.StatusBadRequest {
					return nil
				}
				return plugins.ErrUnavailable
			}),
			"does not recognize statuses above 511": statuses(func(code int) error {
				if code == http.StatusNotFound || http.StatusText(code) == "" {
					return plugins.ErrNotFound
				}
				return plugins.ErrUnavailable
			}),
			"delivers an error page as a file": statuses(func(int) error { return nil }),
			"treats an unavailable backend as an empty one": func(p *plugin) {
				p.lost = func(error) error { return nil }
				p.index = func(ctx context.Context) (all []bundle, err error) {
					defer func() { _ = recover() }()
					return p.all(ctx)
				}
			},
			"returns an internal error when its backend is unavailable": func(p *plugin) { p.lost = func(err error) error { return err } },
			"treats the end of a connection as the end of a file":       bodies(func(_ context.Context, body io.ReadCloser) io.ReadCloser { return io.NopCloser(whole(body)) }),
			"caches errors for ever":                                    keeps(func(_ []bundle, err error) bool { return err == nil }),
			"computes digests from the content that it receives": func(p *plugin) {
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
			},
		},
		registrytest.GivenUp: {
			"waits for its backend regardless of the deadline": func(p *plugin) {
				p.get = func(ctx context.Context, path string) (io.ReadCloser, error) {
					return p.request(context.WithoutCancel(ctx), path)
				}
			},
			"cancels all calls when the first one is cancelled": func(p *plugin) {
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
			},
			"returns not found when the deadline has passed": func(p *plugin) {
				p.lost = func(err error) error {
					if errors.Is(err, context.DeadlineExceeded) {
						return plugins.ErrNotFound
					}
					return plugins.Unavailable(err)
				}
			},
			"keeps a slot occupied for each abandoned call": func(p *plugin) {
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
			},
			"reads the rest of an abandoned download": func(p *plugin) {
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
			},
		},
	}
}

func TestFaultyImplementationsAreCaught(t *testing.T) {
	plugintest.Liars(t, plugintest.Time, registrytest.Properties(), plugintest.Trial(kit.Normal), open, lies())
}

// piece is a download whose messages are too large.
type piece struct{ io.ReadCloser }

func (piece) LargestPiece() int { return 1<<20 + 1 }
