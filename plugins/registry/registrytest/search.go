package registrytest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// nonsense returns a word that occurs in no bundle's name, title or description.
func nonsense(r *rand.Rand) string { return fmt.Sprintf("qqzzxx%08x", r.Uint32()) }

// read reads a search to its last page, or until it has enough entries if enough is not 0. It checks the rules that
// apply to every search.
func (s Subject) read(ctx context.Context, q registry.Query, enough int) (all []registry.Entry, err error) {
	return s.readWith(ctx, q, enough, func(int) error { return nil })
}

// readWith is read with a call to between after each page, with the number of pages so far. Entries may repeat if
// between changed something.
func (s Subject) readWith(ctx context.Context, q registry.Query, enough int, between func(pages int) error) (all []registry.Entry, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*timeout)
	defer cancel()
	first, limit := fmt.Sprintf("Search of %.80q with the limit %d, page by page", q.Text, q.Limit), q.Limit
	if limit == 0 {
		limit = registry.DefaultLimit
	}
	cursors, empty := map[string]bool{}, 0
	for pages := 1; ; pages++ {
		page, err := s.Registry.Search(ctx, q)
		if err != nil {
			return nil, &answeredError{fmt.Sprintf("%s, page %d", first, pages), err}
		}
		if len(page.Entries) > limit {
			return nil, failure(first, fmt.Sprintf("%d entries on a page", len(page.Entries)), fmt.Sprintf("at most %d", limit), pageLimit)
		}
		for _, e := range page.Entries {
			if why := malformed(e); why != "" {
				return nil, failure(first, fmt.Sprintf("%+v", e), why, entryFormed)
			}
		}
		all = append(all, page.Entries...)
		if page.NextCursor == "" || enough > 0 && len(all) >= enough {
			return all, nil
		}
		if empty++; len(page.Entries) > 0 {
			empty = 0
		}
		if cursors[page.NextCursor] || empty > 10 {
			return nil, failure(first, fmt.Sprintf("the cursor %q after page %d, again or after nothing but empty pages", page.NextCursor, pages), "an end", onePage)
		}
		cursors[page.NextCursor], q.Cursor = true, page.NextCursor
		if err := between(pages); err != nil {
			return nil, err
		}
	}
}

// answeredError is an error that the registry returned.
type answeredError struct {
	call string
	error
}

func (e *answeredError) Unwrap() error { return e.error }

// answered turns an error that the registry must not return into a failure.
func answered(err error) error {
	if a, ok := errors.AsType[*answeredError](err); ok {
		return failure(a.call, "the error "+a.Error(), "an answer", listsAll)
	}
	return err
}

func malformed(e registry.Entry) string {
	switch {
	case e.Name == "" || !exact.MatchString(e.Version):
		return "a name and an exact version"
	case e.TrustScore < 0 || e.TrustScore > 100:
		return "a trust score of 0 to 100"
	}
	return ""
}

// search returns a call that compares a search with the model, or returns the error of the search.
func (s Subject) search(c Catalogue, q registry.Query) func(context.Context) error {
	return func(ctx context.Context) error {
		got, err := s.read(ctx, q, min(most, len(c.Bundles)+most*bit(c.Whole)))
		if err != nil {
			return err
		}
		return c.found(q, got, 0)
	}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// found compares the entries of a whole search with the model. For each change, one bundle may be repeated or left out.
func (c Catalogue) found(q registry.Query, got []registry.Entry, changes int) error {
	call := fmt.Sprintf("Search of %.80q with the limit %d, all pages", q.Text, q.Limit)
	seen := map[string]bool{}
	for _, e := range got {
		if seen[e.Name] {
			if changes--; changes < 0 {
				return failure(call, e.Name+" twice", "each bundle once", onePage)
			}
		}
		seen[e.Name] = true
		b, known := c.find(e.Name)
		if !known {
			if c.Whole {
				return failure(call, fmt.Sprintf("%+v", e), "only existing bundles", ownName)
			}
			b = Bundle{Name: e.Name, Title: e.Title, Description: e.Description, Latest: e.Version}
		}
		if _, may := b.fits(q.Text); !may {
			return failure(call, fmt.Sprintf("%+v", e), "only bundles with these words in their own description", ownName)
		}
		if known && b.Latest != e.Version {
			return failure(call, fmt.Sprintf("%+v", e), "the latest version, "+b.Latest, latestIs)
		}
		if c.Whole && !b.described(e.Title, e.Description) {
			return failure(call, fmt.Sprintf("%+v", e), fmt.Sprintf("the title %q and the description %q, or none", b.Title, b.Description), entryFormed)
		}
	}
	for _, b := range c.Bundles {
		if must, _ := b.fits(q.Text); must && !seen[b.Name] && (c.Whole || q.Text != "") {
			if changes--; changes < 0 {
				return failure(call, fmt.Sprintf("%d bundles without %s", len(got), b.Name), "this one, too", map[bool]string{true: listsAll, false: ownName}[q.Text == ""])
			}
		}
	}
	return nil
}

// described reports whether a title and a description are the bundle's, or empty.
func (b Bundle) described(title, description string) bool {
	return b.Description == "" || (title == "" || title == b.Title) && (description == "" || strings.Contains(description, b.Description))
}

// texts returns the queries that the kit searches for: the bundles' names, parts of their descriptions, and
// words that occur nowhere. Others look like patterns, or are special to some layer between a search and its
// backend.
func texts(r *rand.Rand, c Catalogue, some []Bundle) []string {
	all := []string{
		"", `"`, "'", `\`, "' OR '1'='1", "(", "[a", "日本語 🪢", "e\u0301", "a&b=c#d%", "100%", "%zz", "\t", " ", strings.Repeat("x", 1500), "\x00",
		"%_%_%", ".*", "[a-z][a-z]*", "*?*", "%%%", "^", "$", "_", "*", "?", "-", "!", "+", "|", "~",
	}
	for i, b := range some {
		lost := nonsense(r)
		all = append(all, b.Name, lost, lost+" "+b.Name, b.Name+lost, lost+" OR "+b.Name, lost+"|"+b.Name, "NOT "+lost, "-"+lost, lost[:6]+":"+b.Name, strings.Repeat(b.Name+" ", 20)+lost)
		for j, between := range []string{" ", "\x00", strings.Repeat(" ", 1000), "#", "&", "?", ",", ";", "+", "%26", "\n", "--"} {
			if (i+j)%3 == 0 {
				all = append(all, b.Name+between+lost)
			}
		}
		if last := strings.LastIndexByte(b.Name, '/') + 1; len(b.Name) > last+4 { // a typo
			all = append(all, b.Name[:last]+"qx"+b.Name[last+2:])
		}
		if c.Whole && b.Title != "" {
			all = append(all, b.Title, strings.ToUpper(b.Name), b.Name[:len(b.Name)-1], b.Description, b.Description+lost, b.Name[:2+i%4])
		}
	}
	return all
}

// pick chooses up to n bundles.
func (c Catalogue) pick(r *rand.Rand, n int) []Bundle {
	all := slices.Clone(c.Bundles)
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(n, len(all))]
}

func searches(ctx context.Context, t *kit.Trial, s Subject) {
	r, count := t.Rand(0), 0
	var c Catalogue
	for _, bundles := range []int{t.Count(30), t.Count(120)} {
		c = s.catalogue(ctx, r, min(bundles, 500))
		var calls []func(context.Context) error
		for _, text := range texts(r, c, append(c.pick(r, t.Count(5)), longest(c))) {
			calls = append(calls, s.search(c, registry.Query{Text: text, Limit: registry.MaxLimit}))
		}
		for _, b := range c.pick(r, t.Count(30)) {
			calls = append(calls, s.search(c, registry.Query{Text: b.Name}))
		}
		for _, q := range []registry.Query{{Limit: 7}, {}, {Limit: 19}, {Limit: 100}, {Limit: 99}, {Limit: 50}, {Text: c.Bundles[0].Name, Limit: 1}} {
			calls = append(calls, s.search(c, q))
		}
		if len(c.Bundles) <= 50 || t.Effort == kit.Deep { // small pages only for a small catalogue
			calls = append(calls, s.search(c, registry.Query{Limit: 1}), s.search(c, registry.Query{Limit: 2}), s.search(c, registry.Query{Limit: len(c.Bundles)}), s.search(c, registry.Query{Text: shared(c), Limit: 2}))
		}
		for _, limit := range []int{registry.MaxLimit + 1, 1<<8 + 20, 1000, 1<<16 + 20, 1<<31 - 1} {
			calls = append(calls, func(ctx context.Context) error {
				_, err := s.Registry.Search(ctx, registry.Query{Limit: limit})
				return mustBe(fmt.Sprintf("Search with the limit %d", limit), err, plugins.ErrInvalid, limit100)
			})
		}
		calls = append(calls, s.steady(c))
		atOnce(ctx, calls)
		count += len(calls)
		if s.Publish == nil {
			break
		}
		if len(c.Bundles) <= 50 || t.Effort == kit.Deep {
			s.interleaved(ctx, c, t.Count(80))
			count += t.Count(80)
		}
	}
	t.Cover("%d searches, read to their end, 16 at a time", count)
	s.needs(t, c)
}

// interleaved reads n searches at the same time. None continues until all of them have their first page.
func (s Subject) interleaved(ctx context.Context, c Catalogue, n int) {
	errs := make([]error, n)
	var running, first sync.WaitGroup
	first.Add(n)
	for i := range n {
		running.Go(func() {
			has := sync.OnceFunc(first.Done)
			defer has()
			q := registry.Query{Limit: 12 + i%5}
			got, err := s.readWith(ctx, q, 0, func(int) error { has(); first.Wait(); return nil })
			if errs[i] = answered(err); err == nil {
				errs[i] = c.found(q, got, 0)
			}
		})
	}
	running.Wait()
	for _, err := range errs {
		kit.Must(kit.Citing(kit.After(err, fmt.Sprintf("with %d other searches that have their first page:", n-1)), undisturbed))
	}
}

// longest returns the bundle with the longest name.
func longest(c Catalogue) Bundle {
	return slices.MaxFunc(c.Bundles, func(a, b Bundle) int { return len(a.Name) - len(b.Name) })
}

// shared returns a query that matches many bundles.
func shared(c Catalogue) string {
	words := strings.FieldsFunc(c.Bundles[len(c.Bundles)-1].Name, func(r rune) bool { return strings.ContainsRune("@/-_.", r) })
	return slices.MaxFunc(words, func(a, b string) int { return count(c, a) - count(c, b) })
}

func count(c Catalogue, text string) (n int) {
	for _, b := range c.Bundles {
		n += bit(strings.Contains(b.Name, text))
	}
	return n
}

// steady returns a call that compares the pages of a search with several results to one large page. The registry
// decides which bundles match, but the page size must not affect that.
func (s Subject) steady(c Catalogue) func(context.Context) error {
	return func(ctx context.Context) error {
		text := shared(c)
		large, err := s.read(ctx, registry.Query{Text: text, Limit: registry.MaxLimit}, most)
		if err != nil {
			return answered(err)
		}
		for _, limit := range []int{3, max(1, min(len(large), registry.MaxLimit))} {
			small, err := s.read(ctx, registry.Query{Text: text, Limit: limit}, most)
			if err != nil {
				return answered(err)
			}
			names := map[string]int{}
			for _, e := range large {
				names[e.Name]++
			}
			for _, e := range small {
				names[e.Name]--
			}
			for name, n := range names {
				if n != 0 && len(large) < most {
					return failure(fmt.Sprintf("Search of %q in pages of %d, and of %d", text, registry.MaxLimit, limit), name+" in one of them only, or twice", "the same bundles", onePage)
				}
			}
		}
		return nil
	}
}

// mustBe returns a failure unless got is the contract's error want.
func mustBe(call string, got, want error, sentence string) error {
	if !errors.Is(got, want) {
		return failure(call, message(got), "the error "+want.Error(), sentence)
	}
	return nil
}

func message(err error) string {
	if err == nil {
		return "no error"
	}
	return "the error " + kit.ErrorText(err)
}
