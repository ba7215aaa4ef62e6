package ranking

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Document is the searchable text of a tool.
type Document struct {
	App         string
	Name        string // without the app's prefix
	Title       string
	Description string
	Arguments   []string // their names and descriptions
}

// The weight of a word, depending on where it occurs.
const (
	inApp         = 1.6
	inName        = 3.0
	inTitle       = 2.0
	inDescription = 1.0
	inArguments   = 0.35
)

// The weight of a query word that a document only contains in a different form.
const (
	asSynonym = 0.45
	asPrefix  = 0.7
	asTypo    = 0.6
)

// The parameters of BM25: how quickly further occurrences of a word stop counting, and how much long text is penalized.
const (
	saturation = 1.2
	byLength   = 0.5
)

// Index ranks a fixed set of documents. It is safe for concurrent use.
type Index struct {
	postings   map[string][]posting // by stem
	vocabulary []string             // the stems, sorted
	lengths    []float64            // of the documents, in weighted words
	average    float64
	synonyms   map[string][]string
	fillers    map[string]bool
}

// posting is a document that contains a word.
type posting struct {
	document int
	weight   float64
}

// New returns an index of documents.
func New(documents []Document) *Index {
	x := &Index{postings: map[string][]posting{}, lengths: make([]float64, len(documents)), synonyms: synonyms(), fillers: map[string]bool{}}
	for _, w := range words(fillers) {
		x.fillers[w] = true
	}
	for i, d := range documents {
		counts := map[string]float64{}
		add := func(weight float64, texts ...string) {
			for _, text := range texts {
				for _, w := range words(text) {
					counts[w] += weight
					x.lengths[i] += weight
				}
			}
		}
		add(inApp, d.App)
		add(inName, d.Name)
		add(inTitle, d.Title)
		add(inDescription, d.Description)
		add(inArguments, d.Arguments...)
		for w, weight := range counts {
			x.postings[w] = append(x.postings[w], posting{i, weight})
		}
		x.average += x.lengths[i] / float64(len(documents))
	}
	for w := range x.postings {
		x.vocabulary = append(x.vocabulary, w)
	}
	slices.Sort(x.vocabulary)
	return x
}

// Search returns the indexes of the documents that contain a word of the query, best first, and in document order
// among equals. A document that contains more words of the query ranks above one that contains the same word often.
func (x *Index) Search(query string) []int {
	scores, found := map[int]float64{}, map[int]float64{}
	asked := x.meaning(query)
	for _, word := range asked {
		best := map[int]float64{}
		for _, form := range x.forms(word) {
			for _, p := range x.postings[form.stem] {
				best[p.document] = max(best[p.document], form.weight*x.score(form.stem, p))
			}
		}
		for document, score := range best {
			scores[document] += score
			found[document]++
		}
	}
	ranked := make([]int, 0, len(scores))
	for document := range scores {
		scores[document] *= 0.5 + found[document]/float64(len(asked))
		ranked = append(ranked, document)
	}
	slices.SortFunc(ranked, func(a, b int) int {
		return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(a, b))
	})
	return ranked
}

// longestQuery is the number of bytes of a query that are considered.
const longestQuery = 1000

// meaning returns the words of a query without fillers, or all words if there are only fillers.
func (x *Index) meaning(query string) []string {
	asked := words(query[:min(len(query), longestQuery)])
	if kept := slices.DeleteFunc(slices.Clone(asked), func(w string) bool { return x.fillers[w] }); len(kept) > 0 {
		return kept
	}
	return asked
}

// score returns the BM25 score of one word in one document.
func (x *Index) score(stem string, p posting) float64 {
	n, all := float64(len(x.postings[stem])), float64(len(x.lengths))
	rare := math.Log(1 + (all-n+0.5)/(n+0.5))
	norm := 1 - byLength + byLength*x.lengths[p.document]/x.average
	return rare * p.weight * (saturation + 1) / (p.weight + saturation*norm)
}

// form is a word of the index that matches a word of a query.
type form struct {
	stem   string
	weight float64
}

// forms returns the words of the index that a query word may mean: the word itself and its synonyms. For a word that
// is not in the index, it adds words that start with it, words that it starts with, and words that differ by one or
// two letters.
func (x *Index) forms(word string) []form {
	forms := []form{{word, 1}}
	for _, s := range x.synonyms[word] {
		forms = append(forms, form{s, asSynonym})
	}
	if _, known := x.postings[word]; known {
		return forms
	}
	for _, v := range x.vocabulary {
		switch {
		case len(word) >= 3 && strings.HasPrefix(v, word), len(v) >= 4 && strings.HasPrefix(word, v):
			forms = append(forms, form{v, asPrefix})
		case isTypo(word, v):
			forms = append(forms, form{v, asTypo})
			for _, s := range x.synonyms[v] {
				forms = append(forms, form{s, asTypo * asSynonym})
			}
		}
	}
	return forms
}

// isTypo reports whether one word may be a mistyped form of the other.
func isTypo(a, b string) bool {
	allowed := 0
	switch n := min(len(a), len(b)); {
	case n >= 5:
		allowed = 2
	case n == 4:
		allowed = 1
	}
	if allowed == 0 || max(len(a), len(b))-min(len(a), len(b)) > allowed || a[0] != b[0] && a[1] != b[1] {
		return false
	}
	return levenshtein.ComputeDistance(a, b) <= allowed
}
