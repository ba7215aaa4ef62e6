package ranking

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// rows reads a table from testdata.
func rows(t testing.TB, file string) (table [][]string) {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		table = append(table, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	return table
}

func catalogue(t testing.TB) (documents []Document, names []string) {
	for _, row := range rows(t, "tools.tsv") {
		documents = append(documents, Document{App: row[0], Name: row[1], Description: row[2]})
		names = append(names, row[0]+"__"+row[1])
	}
	return documents, names
}

// recall returns the fraction of the queries of a kind for which the wanted tool is among the first five.
func recall(t *testing.T, x *Index, names []string, kind string) float64 {
	found, all := 0, 0
	for _, row := range rows(t, "queries.tsv") {
		if row[0] != kind {
			continue
		}
		if !slices.Contains(names, row[2]) {
			t.Fatalf("there is no tool %s", row[2])
		}
		all++
		first := x.Search(row[1])
		first = first[:min(5, len(first))]
		if slices.ContainsFunc(first, func(i int) bool { return names[i] == row[2] }) {
			found++
			continue
		}
		var got []string
		for _, i := range first {
			got = append(got, names[i])
		}
		t.Logf("%q: %s is not among %q", row[1], row[2], got)
	}
	return float64(found) / float64(all)
}

func TestTheIntendedToolIsInTheTopFiveOfFiveHundred(t *testing.T) {
	documents, names := catalogue(t)
	if len(documents) != 500 {
		t.Fatalf("%d tools", len(documents))
	}
	x := New(documents)
	for kind, least := range map[string]float64{"model": 0.97, "variant": 0.8} {
		got := recall(t, x, names, kind)
		t.Logf("recall@5 of the queries of the kind %s: %.3f", kind, got)
		if got < least {
			t.Errorf("recall@5 of the queries of the kind %s is %.3f, not %.2f", kind, got, least)
		}
	}
}

func TestASearchReturnsTheSameOrderEachTime(t *testing.T) {
	documents, _ := catalogue(t)
	want := New(documents).Search("create or list the settings of an account")
	for range 50 {
		if got := New(documents).Search("create or list the settings of an account"); !slices.Equal(got, want) {
			t.Fatalf("got %v, and before %v", got, want)
		}
	}
}

func TestOddQueriesAndDocumentsFindNothing(t *testing.T) {
	x := New([]Document{{App: "a", Name: "b"}})
	for _, query := range []string{"", " ", "zebra", "!?", strings.Repeat("x", 100_000), "\xff\xfe", "the", "ü", "日本"} {
		if got := x.Search(query); len(got) != 0 {
			t.Errorf("%.20q finds %v", query, got)
		}
	}
	if got := New(nil).Search("a"); len(got) != 0 {
		t.Errorf("an empty index finds %v", got)
	}
}

func BenchmarkSearch(b *testing.B) {
	documents, _ := catalogue(b)
	x, queries := New(documents), rows(b, "queries.tsv")
	for i := 0; b.Loop(); i++ {
		x.Search(queries[i%len(queries)][1])
	}
}
