package registrytest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

func findsSomething(ctx context.Context, r registry.Registry) error {
	_, err := entries(ctx, r)
	return err
}

func entriesAreWhole(ctx context.Context, r registry.Registry) error {
	all, err := entries(ctx, r)
	for _, e := range all {
		if e.Name == "" || !exact.MatchString(e.Version) || e.TrustScore < 0 || e.TrustScore > 100 {
			return fmt.Errorf("an entry must have a name, an exact version and a trust score of 0 to 100; one is %+v", e)
		}
	}
	return err
}

func pageIsBounded(ctx context.Context, r registry.Registry) error {
	for _, limit := range []int{1, 2, registry.MaxLimit} {
		page, err := search(ctx, r, registry.Query{Limit: limit})
		if err != nil {
			return err
		}
		if len(page.Entries) > limit {
			return fmt.Errorf("a page of at most %d entries must not hold %d", limit, len(page.Entries))
		}
	}
	return nil
}

func pageHasDefault(ctx context.Context, r registry.Registry) error {
	page, err := search(ctx, r, registry.Query{})
	if err == nil && len(page.Entries) > registry.DefaultLimit {
		return fmt.Errorf("a page without a limit must hold at most %d entries; it holds %d", registry.DefaultLimit, len(page.Entries))
	}
	return err
}

func refusesLimit(ctx context.Context, r registry.Registry) error {
	for _, limit := range []int{-1, registry.MaxLimit + 1} {
		_, err := r.Search(ctx, registry.Query{Limit: limit})
		if err := mustBe(err, plugins.ErrInvalid, fmt.Sprintf("Search with a limit of %d", limit)); err != nil {
			return err
		}
	}
	return nil
}

// readPages reads pages until the last one, or until there are enough.
func readPages(ctx context.Context, r registry.Registry, limit, enough int) (names []string, ended bool, err error) {
	seen := map[string]bool{}
	q := registry.Query{Limit: limit}
	for len(names) < enough {
		page, err := search(ctx, r, q)
		if err != nil {
			return nil, false, err
		}
		for _, e := range page.Entries {
			names = append(names, e.Name)
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			return names, true, nil
		}
		if seen[q.Cursor] {
			return nil, false, fmt.Errorf("a search must come to its end; the cursor %q came twice", q.Cursor)
		}
		seen[q.Cursor] = true
	}
	return names, false, nil
}

func pagesDiffer(ctx context.Context, r registry.Registry) error {
	names, _, err := readPages(ctx, r, 2, sample)
	slices.Sort(names)
	for i := 1; i < len(names); i++ {
		if names[i] == names[i-1] {
			return fmt.Errorf("a bundle must come on one page only; %s came twice", names[i])
		}
	}
	return err
}

func pagesAreComplete(ctx context.Context, r registry.Registry) error {
	large, err := search(ctx, r, registry.Query{Limit: registry.MaxLimit})
	if err != nil || large.NextCursor != "" && len(large.Entries) == 0 {
		return err
	}
	names, ended, err := readPages(ctx, r, 2, min(len(large.Entries), sample))
	if err != nil {
		return err
	}
	if len(names) < min(len(large.Entries), sample) {
		return fmt.Errorf("pages of 2 must hold the %d bundles that a page of %d holds; they ended after %d", len(large.Entries), registry.MaxLimit, len(names))
	}
	for i, e := range large.Entries[:min(len(names), len(large.Entries))] {
		if names[i] != e.Name {
			return fmt.Errorf("pages of 2 must hold the same bundles in the same order as a page of %d; at %d there is %s and not %s", registry.MaxLimit, i, names[i], e.Name)
		}
	}
	if ended && large.NextCursor == "" && len(names) != len(large.Entries) {
		return fmt.Errorf("pages of 2 hold %d bundles, a page of %d holds %d", len(names), registry.MaxLimit, len(large.Entries))
	}
	return nil
}

func findsByName(ctx context.Context, r registry.Registry) error {
	all, err := entries(ctx, r)
	for _, e := range all[:min(len(all), 3)] {
		page, err := search(ctx, r, registry.Query{Text: e.Name, Limit: registry.MaxLimit})
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(page.Entries, func(found registry.Entry) bool { return found.Name == e.Name }) {
			return fmt.Errorf("a search for %q must find that bundle; it found %d others", e.Name, len(page.Entries))
		}
	}
	return err
}

// findsTheWholeText searches for texts that begin or end as a name does, and that no bundle says of itself.
func findsTheWholeText(ctx context.Context, r registry.Registry) error {
	const nonsense = "qqzzxxjjwwkk"
	all, err := entries(ctx, r)
	for _, e := range all[:min(len(all), 2)] {
		for _, text := range []string{
			e.Name + " " + nonsense, nonsense + " " + e.Name, e.Name + nonsense, e.Name + strings.Repeat(" ", 300) + nonsense, e.Name + "\x00" + nonsense,
			"-" + nonsense, "!" + nonsense, "NOT " + nonsense, nonsense + " OR " + e.Name, nonsense + "|" + e.Name,
		} {
			page, err := search(ctx, r, registry.Query{Text: text})
			if err != nil {
				return err
			}
			if len(page.Entries) > 0 {
				return fmt.Errorf("a search for %.80q must find nothing, because no bundle says that of itself; it found %s", text, page.Entries[0].Name)
			}
		}
	}
	return err
}

// takesAnyText searches for texts that something between a search and its backend may choke on.
func takesAnyText(ctx context.Context, r registry.Registry) error {
	for _, text := range []string{`"`, "'", `\`, "' OR '1'='1", "(", "[a", "日本語 🪢", "e\u0301", "a&b=c#d%", "100%", "%zz", "\t", strings.Repeat("x", 1500)} {
		if _, err := search(ctx, r, registry.Query{Text: text}); err != nil {
			return fmt.Errorf("a search for %.60q, which is a text as any other, must be answered: %w", text, err)
		}
	}
	return nil
}

func findsNothing(ctx context.Context, r registry.Registry) error {
	page, err := search(ctx, r, registry.Query{Text: "no-bundle-is-called-qqzzxxjjwwkk"})
	if err == nil && (len(page.Entries) > 0 || page.NextCursor != "") {
		return fmt.Errorf("a search that fits nothing must be an empty last page; it is %+v", page)
	}
	return err
}
