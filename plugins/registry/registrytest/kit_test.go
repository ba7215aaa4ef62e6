package registrytest_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
	"github.com/ropewalk/ropewalk/plugins/registry"
	"github.com/ropewalk/ropewalk/plugins/registry/registrytest"
)

// trial returns a normal trial, with a shorter wait for plugins that restart immediately.
func trial() kit.Trial {
	t := plugintest.Trial(kit.Normal)
	t.Start = 3 * time.Second
	return t
}

func TestTheKitChecksWhatTheContractSays(t *testing.T) {
	plugintest.Sentences(t, "registry")
}

func TestCorrectRegistriesPassHoweverUnusualTheyAre(t *testing.T) {
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
		"one whose cursors hold the rest of the search": func(p *plugin) {
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
			try, all := trial(), registrytest.Properties()
			if name != "the usual one" {
				try.Effort, all = kit.Quick, all[:4] // the others are not about pages
			}
			plugintest.Judge(t, all, try, open(t, change))
		})
	}
}
