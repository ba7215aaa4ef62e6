package registrytest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// paging are promises of searches that are read page by page.
func paging() []Check {
	const once, concurrent = "Each bundle is on one page only", "Calls come concurrently"
	return []Check{
		check("the pages of a search for a text hold what one large page holds", once, textPages),
		check("pages of the default size hold what one large page holds", once, defaultPages),
		check("searches that are read in turn do not disturb each other", concurrent, pagesInTurn),
		check("searches at once each have their own pages", concurrent, pagesAtOnce),
		check("a text is not a pattern", "a text that is in nothing a bundle says of itself fits none", fitsNoPattern),
		check("a limit over 100 is invalid, however large", "INVALID_ARGUMENT for a limit over 100", refusesLargeLimits),
	}
}

// names reads a search to its end, or until there are enough.
func names(ctx context.Context, r registry.Registry, q registry.Query, enough int) (all []string, err error) {
	for range lastPage {
		page, err := search(ctx, r, q)
		if err != nil {
			return nil, err
		}
		for _, e := range page.Entries {
			all = append(all, e.Name)
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" || len(all) >= enough {
			return all, nil
		}
	}
	return nil, fmt.Errorf("the search for %q does not come to its last page", q.Text)
}

// sharedText finds a text that several bundles fit, and the bundles that one large page holds for it.
func sharedText(ctx context.Context, r registry.Registry) (text string, fit []string, err error) {
	all, err := entries(ctx, r)
	if err != nil {
		return "", nil, err
	}
	count := map[string]int{}
	for _, e := range all {
		words := strings.FieldsFunc(e.Name, func(c rune) bool { return strings.ContainsRune("@/-_.", c) })
		slices.Sort(words)
		for _, word := range slices.Compact(words) {
			count[word]++
		}
	}
	candidates := make([]string, 0, len(count))
	for word, n := range count {
		if n > 2 && n < len(all) {
			candidates = append(candidates, word)
		}
	}
	slices.SortFunc(candidates, func(a, b string) int { return (count[b]-count[a])*1000 + strings.Compare(a, b) })
	for _, word := range candidates[:min(len(candidates), 3)] {
		page, err := search(ctx, r, registry.Query{Text: word, Limit: registry.MaxLimit})
		if err != nil {
			return "", nil, err
		}
		if len(page.Entries) > 2 {
			for _, e := range page.Entries {
				fit = append(fit, e.Name)
			}
			return word, fit, nil
		}
	}
	return "", nil, kit.Skip("the names of the bundles that the kit looked at share no word that a search finds")
}

// samePages compares a search in pages of a size with what one large page holds.
func samePages(ctx context.Context, r registry.Registry, q registry.Query, want []string) error {
	got, err := names(ctx, r, q, len(want))
	if err != nil {
		return err
	}
	for i, name := range want {
		if i >= len(got) || got[i] != name {
			return fmt.Errorf("the pages of a search for %q with the limit %d must hold the same bundles in the same order as one page of %d; they differ at %d: %q and %q", q.Text, q.Limit, registry.MaxLimit, i, got, want)
		}
	}
	if len(want) < registry.MaxLimit && len(got) > len(want) {
		return fmt.Errorf("the pages of a search for %q with the limit %d hold %d bundles, one page of %d holds %d", q.Text, q.Limit, len(got), registry.MaxLimit, len(want))
	}
	return nil
}

func textPages(ctx context.Context, r registry.Registry) error {
	text, fit, err := sharedText(ctx, r)
	if err != nil {
		return err
	}
	for _, limit := range []int{1, 2} {
		if err := samePages(ctx, r, registry.Query{Text: text, Limit: limit}, fit[:min(len(fit), sample)]); err != nil {
			return err
		}
	}
	if len(fit) < registry.MaxLimit {
		return samePages(ctx, r, registry.Query{Text: text, Limit: len(fit) - 1}, fit)
	}
	return nil
}

func defaultPages(ctx context.Context, r registry.Registry) error {
	want, err := names(ctx, r, registry.Query{Limit: registry.MaxLimit}, 1)
	if err != nil {
		return err
	}
	if len(want) <= registry.DefaultLimit {
		return kit.Skip("the registry holds fewer than %d bundles", registry.DefaultLimit+1)
	}
	return samePages(ctx, r, registry.Query{}, want)
}

// pagesInTurn reads two searches alternately, and the page of each cursor twice.
func pagesInTurn(ctx context.Context, r registry.Registry) error {
	all, err := names(ctx, r, registry.Query{Limit: registry.MaxLimit}, 1)
	if err != nil {
		return err
	}
	all = all[:min(len(all), sample)]
	if len(all) < 4 {
		return kit.Skip("the registry holds fewer than 4 bundles")
	}
	var got [2][]string
	queries := [2]registry.Query{{Limit: 1}, {Limit: 3}}
	for len(got[0]) < len(all) && len(got[1]) < len(all) {
		for i := range queries {
			page, err := search(ctx, r, queries[i])
			if err != nil {
				return err
			}
			for _, e := range page.Entries {
				got[i] = append(got[i], e.Name)
			}
			if queries[i].Cursor = page.NextCursor; queries[i].Cursor == "" && len(got[i]) < len(all) {
				return fmt.Errorf("of two searches read in turn, the one with the limit %d ended after %d of %d bundles", queries[i].Limit, len(got[i]), len(all))
			}
		}
		for i := range got {
			n := min(len(got[i]), len(all))
			if !slices.Equal(got[i][:n], all[:n]) {
				return fmt.Errorf("of two searches read in turn, the one with the limit %d gave %q where it gives %q alone", queries[i].Limit, got[i][:n], all[:n])
			}
		}
	}
	return nil
}

func pagesAtOnce(ctx context.Context, r registry.Registry) error {
	want, err := names(ctx, r, registry.Query{Limit: registry.MaxLimit}, 1)
	if err != nil {
		return err
	}
	want = want[:min(len(want), sample)]
	if len(want) < 4 {
		return kit.Skip("the registry holds fewer than 4 bundles")
	}
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			got, err := names(ctx, r, registry.Query{Limit: i%4 + 2}, len(want))
			if err == nil && (len(got) < len(want) || !slices.Equal(got[:len(want)], want)) {
				err = fmt.Errorf("of searches at once, the one with the limit %d gave %q where it gives %q alone", i%4+2, got, want)
			}
			errs[i] = err
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// fitsNoPattern searches for texts that fit every name as a pattern, and none as a text.
func fitsNoPattern(ctx context.Context, r registry.Registry) error {
	for _, text := range []string{"%_%_%", ".*.*", "[a-z][a-z]*", "*?*", "%%%"} {
		page, err := search(ctx, r, registry.Query{Text: text, Limit: registry.MaxLimit})
		if err != nil {
			return err
		}
		for _, e := range page.Entries {
			if !strings.Contains(e.Name+"\n"+e.Title+"\n"+e.Description, text) {
				return fmt.Errorf("a search for %q must find only what has that text; it found %s", text, e.Name)
			}
		}
	}
	return nil
}

func refusesLargeLimits(ctx context.Context, r registry.Registry) error {
	for _, limit := range []int{registry.MaxLimit + 1, 1<<8 + 20, 1000, 1<<16 + 20, 1<<31 - 1} {
		_, err := r.Search(ctx, registry.Query{Limit: limit})
		if err := mustBe(err, plugins.ErrInvalid, fmt.Sprintf("Search with a limit of %d", limit)); err != nil {
			return err
		}
	}
	return nil
}
