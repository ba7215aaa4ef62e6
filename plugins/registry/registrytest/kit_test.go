package registrytest_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
	"github.com/ropewalk/ropewalk/plugins/registry"
	"github.com/ropewalk/ropewalk/plugins/registry/registrytest"
)

func TestTheKitCitesItsContract(t *testing.T) {
	plugintest.Sentences(t, "registry")
}

func TestCorrectButUnusualRegistriesPass(t *testing.T) {
	for name, change := range map[string]func(*plugin){
		"the usual one": func(*plugin) {},
		"one that ends with an empty page": func(p *plugin) {
			p.page = func(found []bundle, q registry.Query) registry.Page {
				page := pageByName(found, q)
				if n := len(page.Entries); n == q.Limit {
					page.NextCursor = page.Entries[n-1].Name
				}
				return page
			}
		},
		"one whose cursors are numbers": func(p *plugin) {
			p.page = func(found []bundle, q registry.Query) (page registry.Page) {
				from, _ := strconv.Atoi(q.Cursor)
				for _, b := range found[min(from, len(found)):min(from+q.Limit, len(found))] {
					page.Entries = append(page.Entries, registry.Entry{Name: b.Name})
				}
				if from += q.Limit; from < len(found) {
					page.NextCursor = strconv.Itoa(from)
				}
				return page
			}
		},
		"one with seven entries on a page": first(func(q *registry.Query) { q.Limit = min(cmp.Or(q.Limit, 7), 7+1000*(q.Limit/101)) }),
		"one without titles and sizes": func(p *plugin) {
			p.entry = func(b bundle) registry.Entry { return registry.Entry{Name: b.Name, Version: b.Versions[0].Version} }
			packs(func(pkg *registry.Package) { pkg.Title, pkg.Description, pkg.Size = "", "", 0 })(p)
		},
		"one whose cursors contain the search": func(p *plugin) {
			p.page = func(found []bundle, q registry.Query) registry.Page {
				raw, _ := base64.StdEncoding.DecodeString(q.Cursor)
				q.Cursor = strings.TrimPrefix(string(raw), q.Text+"\n")
				page := pageByName(found, q)
				if page.NextCursor != "" {
					page.NextCursor = base64.StdEncoding.EncodeToString([]byte(q.Text + "\n" + page.NextCursor))
				}
				return page
			}
		},
		"one that finds words of names": fits(func(b bundle, text string) bool {
			return strings.Contains(b.Name, text) && strings.TrimSpace(text) == text
		}),
		"one that keeps files, and its index for a second": func(p *plugin) {
			var at time.Time
			keeps(func([]bundle, error) bool {
				fresh := time.Since(at) > time.Second
				if fresh {
					at = time.Now()
				}
				return fresh
			})(p)
			var files sync.Map
			p.fetch = func(ctx context.Context, pkg registry.Package) (io.ReadCloser, error) {
				raw, kept := files.Load(pkg.Artifact)
				if !kept {
					body, err := p.open(ctx, pkg)
					if err != nil {
						return nil, err
					}
					defer func() { _ = body.Close() }()
					if raw, err = io.ReadAll(body); err != nil {
						return nil, plugins.Unavailable(err)
					}
					files.Store(pkg.Artifact, raw)
				}
				return io.NopCloser(bytes.NewReader(raw.([]byte))), nil
			}
		},
		"one whose cursors contain the rest of the search": func(p *plugin) {
			p.page = func(found []bundle, q registry.Query) (page registry.Page) {
				rest := strings.Split(q.Cursor, " ")
				if q.Cursor == "" {
					rest = rest[:0]
					for _, b := range found {
						rest = append(rest, b.Name)
					}
				}
				for _, name := range rest[:min(len(rest), q.Limit)] {
					if slices.ContainsFunc(found, func(b bundle) bool { return b.Name == name }) {
						page.Entries = append(page.Entries, registry.Entry{Name: name})
					}
				}
				page.NextCursor = strings.Join(rest[min(len(rest), q.Limit):], " ")
				return page
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			try, all := plugintest.Trial(kit.Normal), registrytest.Properties()
			if name != "the usual one" {
				try.Effort, all = kit.Quick, all[:4] // the others are not about pages
			}
			plugintest.Judge(t, all, try, open(t, change))
		})
	}
}
