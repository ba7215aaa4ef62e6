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
	asShort   = 0.7 // an abbreviation
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
	documents  int
	synonyms   map[string][]string
	fillers    map[string]bool
}

// posting is a document that contains a word.
type posting struct {
	document int
	score    float64 // BM25; while the index is being built, the weight of the word
}

// New returns an index of documents.
func New(documents []Document) *Index {
	x := &Index{postings: map[string][]posting{}, documents: len(documents), synonyms: synonyms(), fillers: map[string]bool{}}
	for _, w := range words(fillers) {
		x.fillers[w] = true
	}
	lengths, average := make([]float64, len(documents)), 0.0 // in weighted words
	for i, d := range documents {
		counts := map[string]float64{}
		add := func(weight float64, texts ...string) (all []string) {
			for _, text := range texts {
				for _, w := range words(text) {
					counts[w] += weight
					lengths[i] += weight
					all = append(all, w)
				}
			}
			return all
		}
		add(inApp, d.App)
		add(inTitle, d.Title)
		add(inArguments, d.Arguments...)
		for _, short := range x.initials(add(inDescription, d.Description)) {
			counts[initialism+short] = inDescription
		}
		for _, short := range x.initials(add(inName, d.Name)) {
			counts[initialism+short] = inName
		}
		for w, weight := range counts {
			x.postings[w] = append(x.postings[w], posting{i, weight})
		}
		average += lengths[i] / float64(len(documents))
	}
	for w, all := range x.postings {
		n := float64(len(all))
		rare := math.Log(1 + (float64(len(documents))-n+0.5)/(n+0.5))
		for i, p := range all {
			norm := 1 - byLength + byLength*lengths[p.document]/average
			all[i].score = rare * p.score * (saturation + 1) / (p.score + saturation*norm)
		}
		if !strings.HasPrefix(w, initialism) {
			x.vocabulary = append(x.vocabulary, w)
		}
	}
	slices.Sort(x.vocabulary)
	return x
}

// initialism starts the postings of initials. No word contains it.
const initialism = "."

// initials returns the first letters of two to four words in a row, such as pr for a pull request.
func (x *Index) initials(words []string) (all []string) {
	var letters []byte
	for _, w := range words {
		if !x.fillers[w] {
			letters = append(letters, w[0])
		}
	}
	for i := range letters {
		for n := 2; n <= min(4, len(letters)-i); n++ {
			all = append(all, string(letters[i:i+n]))
		}
	}
	return all
}

// Search returns the indexes of the documents that contain a word of the query, best first, and in document order
// among equals. A document that contains more words of the query ranks above one that contains the same word often.
func (x *Index) Search(query string) []int {
	asked := x.meaning(query)
	scores, found, best := make([]float64, x.documents), make([]int, x.documents), make([]float64, x.documents)
	for _, word := range asked {
		clear(best)
		for _, form := range x.forms(word) {
			for _, p := range x.postings[form.stem] {
				best[p.document] = max(best[p.document], form.weight*p.score)
			}
		}
		for document, score := range best {
			if score > 0 {
				scores[document] += score
				found[document]++
			}
		}
	}
	var ranked []int
	for document, n := range found {
		if n > 0 {
			scores[document] *= 0.5 + float64(n)/float64(len(asked))
			ranked = append(ranked, document)
		}
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

// form is a word of the index that matches a word of a query.
type form struct {
	stem   string
	weight float64
}

// forms returns the words of the index that a query word may mean: the word itself and its synonyms. For a word that
// is not in the index, it adds words that start with it and words that it starts with. If no synonym is in the index
// either, it also adds what the word may abbreviate, and words that differ by a typing error.
func (x *Index) forms(word string) []form {
	forms := []form{{word, 1}}
	_, known := x.postings[word]
	understood := known
	for _, s := range x.synonyms[word] {
		forms = append(forms, form{s, asSynonym})
		understood = understood || len(x.postings[s]) > 0
	}
	if known {
		return forms
	}
	if !understood {
		forms = append(forms, form{initialism + word, asShort})
	}
	for _, v := range x.vocabulary {
		switch {
		case len(word) >= 3 && strings.HasPrefix(v, word), len(v) >= 4 && strings.HasPrefix(word, v):
			forms = append(forms, form{v, asPrefix})
		case understood:
		case isShort(word, v):
			forms = append(forms, form{v, asShort})
		case isTypo(word, v):
			forms = append(forms, form{v, asTypo})
			for _, s := range x.synonyms[v] {
				forms = append(forms, form{s, asTypo * asSynonym})
			}
		}
	}
	return forms
}

// isShort reports whether a word is another one without its vowels and perhaps some consonants, such as msg for message.
func isShort(short, word string) bool {
	if len(short) < 3 || len(short) >= len(word) || short[0] != word[0] || strings.ContainsAny(short[1:], "aeiou") {
		return false
	}
	rest := word
	for i := range len(short) {
		at := strings.IndexByte(rest, short[i])
		if at < 0 {
			return false
		}
		rest = rest[at+1:]
	}
	return true
}

// isTypo reports whether one word may be a mistyped form of the other. Short words differ from many others in one letter, so
// they must have the same first letter.
func isTypo(a, b string) bool {
	allowed := 0
	switch n := min(len(a), len(b)); {
	case n >= 6:
		allowed = 2
	case n >= 4 && a[0] == b[0]:
		allowed = 1
	}
	if allowed == 0 || max(len(a), len(b))-min(len(a), len(b)) > allowed || a[0] != b[0] && a[1] != b[1] {
		return false
	}
	return isSwapped(a, b) || levenshtein.ComputeDistance(a, b) <= allowed
}

// isSwapped reports whether two words differ in the order of two adjacent letters.
func isSwapped(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	i := 0
	for i < len(a)-1 && a[i] == b[i] {
		i++
	}
	return i < len(a)-1 && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}
