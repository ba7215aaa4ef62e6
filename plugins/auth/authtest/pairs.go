package authtest

import (
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/plugins/auth"
)

// sortedPairs ranges over a map in key order.
func sortedPairs[V any](all map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if !yield(name, all[name]) {
				return
			}
		}
	}
}

// row is the index of the chosen value for each property of a table.
type row []int

// rows chooses rows of a table, with pairs. A value is bad if the token of a row in which only this value is unusual
// must be refused. The rows are the same for every provider.
func (st *stage) rows(name string, most int, table []property, demanded func(row) demand) []row {
	name = fmt.Sprint(name, st.provider.Setup, most, st.trial.Effort, st.trial.Seed, st.world.algorithms)
	return st.Keys.chosen(name, func() []row {
		bad := func(p, v int) bool { return demanded(only(table, p, v)).clause != "" }
		return pairs(table, bad, st.trial.Count(most), st.trial.Rand(-1))
	})
}

// only returns the row with one unusual value.
func only(table []property, p, v int) row {
	r := make(row, len(table))
	r[p] = v
	return r
}

// pairs chooses rows of a table. First comes each value alone, and then, in random order, all pairs of good
// values of different properties. Each bad value is in `most` rows altogether. Everything else in those rows
// is good, because a second bad value would hide the first. bad reports whether a value makes a token bad. If
// most is 1, only a fifth of the pairs are returned.
func pairs(table []property, bad func(property, value int) bool, most int, chance *rand.Rand) []row {
	good := make([][]int, len(table))
	var alone []row
	for p := range table {
		for v := range table[p].values {
			if v > 0 {
				alone = append(alone, only(table, p, v))
			}
			if v == 0 || !bad(p, v) {
				good[p] = append(good[p], v)
			}
		}
	}
	rows := coverGood(good, chance)
	if chance.Shuffle(len(rows), func(i, k int) { rows[i], rows[k] = rows[k], rows[i] }); most == 1 {
		rows = rows[:len(rows)/5]
	}
	longest := 0
	for p := range good {
		longest = max(longest, len(good[p]))
	}
	for p := range table {
		for v := range table[p].values {
			if slices.Contains(good[p], v) {
				continue
			}
			// Row i has the i-th good value of each property, in a random order for each, so that all of them are used.
			orders := make([][]int, len(table))
			for q := range table {
				orders[q] = chance.Perm(len(good[q]))
			}
			for i := 1; i < min(longest, most); i++ {
				r := make(row, len(table))
				for q := range table {
					r[q] = good[q][orders[q][i%len(good[q])]]
				}
				r[p] = v
				rows = append(rows, r)
			}
		}
	}
	chance.Shuffle(len(rows), func(i, k int) { rows[i], rows[k] = rows[k], rows[i] })
	return append(alone, rows...)
}

// coverGood chooses rows that cover all pairs of good values. Each row is the best of several random candidates.
func coverGood(good [][]int, chance *rand.Rand) (rows []row) {
	type pair [4]int
	left := map[pair]bool{}
	for p := range good {
		for q := p + 1; q < len(good); q++ {
			for _, v := range good[p] {
				for _, w := range good[q] {
					left[pair{p, v, q, w}] = true
				}
			}
		}
	}
	each := func(r row, visit func(pair)) {
		for p := range r {
			for q := p + 1; q < len(r); q++ {
				visit(pair{p, r[p], q, r[q]})
			}
		}
	}
	ordered := slices.SortedFunc(maps.Keys(left), func(a, b pair) int { return slices.Compare(a[:], b[:]) })
	for _, must := range ordered {
		if !left[must] {
			continue
		}
		var best row
		most := -1
		for range 12 {
			r := make(row, len(good))
			for p := range r {
				r[p] = good[p][chance.IntN(len(good[p]))]
			}
			r[must[0]], r[must[2]] = must[1], must[3]
			count := 0
			each(r, func(p pair) {
				if left[p] {
					count++
				}
			})
			if count > most {
				best, most = r, count
			}
		}
		each(best, func(p pair) { delete(left, p) })
		rows = append(rows, best)
	}
	return rows
}

// draft returns the token of a row.
func (r row) draft(p *Provider, table []property) *draft { return r.change(p.draft(), table) }

// change applies a row to a draft.
func (r row) change(d *draft, table []property) *draft {
	for at, v := range r {
		chosen := table[at].values[v]
		chosen.set(d)
		if v > 0 {
			d.name += ", " + chosen.name
		}
	}
	return d
}

// Forgeries returns tokens that an adapter for p must reject for the provider's Audience, each wrong in only one way.
func (p *Provider) Forgeries() (all []Forgery) {
	w := world{issuer: p.Issuer(), clientID: p.ClientID, signs: p.signed, algorithms: []string{"RS256"}}
	if p.Setup == OneOrganization {
		w.organization = p.Organization
	}
	table := p.table()
	for at, property := range table {
		for v, value := range property.values {
			token, now := only(table, at, v).draft(p, table).token(), time.Now()
			if demand := w.verify(auth.VerifyRequest{Token: token, Audiences: []string{p.Audience}}, now, now); demand.clause != "" && !almostValid(now, demand) {
				all = append(all, Forgery{value.name, demand.clause, token})
			}
		}
	}
	return all
}

// almostValid reports whether the token becomes valid within 20 seconds.
func almostValid(now time.Time, d demand) bool {
	for name, edge := range map[string]time.Duration{"nbf": -30 * time.Second, "iat": -30 * time.Second} {
		if at, ok := seconds(d.claims[name]); ok && now.After(at.Add(edge-20*time.Second)) && now.Before(at.Add(edge)) {
			return true
		}
	}
	return false
}
