package ranking

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
)

// Document is the searchable text of a tool.
type Document struct {
	App         string
	Name        string // the tool's name without the app's prefix
	Title       string
	Description string
	Arguments   []string // the names and descriptions of the arguments
}

// The weight of a word, depending on where it occurs.
const (
	inApp         = 1.6
	inName        = 3.0
	inTitle       = 2.0
	inDescription = 1.0
	inArguments   = 0.35
)

// The parameters of BM25: how quickly further occurrences of a word stop counting, and how much long text is penalized.
const (
	saturation = 1.2
	byLength   = 0.5
)

// Index ranks a fixed set of documents. It is safe for concurrent use.
type Index struct {
	postings   map[string][]posting // by stem
	rarity     map[string]float64   // rarity of each stem
	vocabulary map[string]string    // from the words of the documents and of alike.txt to their stems
	entries    []entry              // the entries of vocabulary as a list, because a search reads all of them
	documents  int
	fillers    map[string]bool
	light      map[string]bool
}

// posting is a document that contains a word.
type posting struct {
	document int
	score    float64 // BM25; while the index is being built, the weight of the word
}

// entry is a word of the vocabulary.
type entry struct{ word, stem string }

// New returns an index of documents.
func New(documents []Document) *Index {
	x := &Index{postings: map[string][]posting{}, rarity: map[string]float64{}, vocabulary: maps.Clone(thesaurus().stems),
		documents: len(documents), fillers: setOf(fillers), light: setOf(light)}
	lengths := make([]float64, len(documents)) // the lengths of the documents, in weighted words
	for i, d := range documents {
		counts := map[string]float64{}
		add := func(weight float64, texts ...string) (all []string) {
			for _, text := range texts {
				for _, w := range words(text) {
					if x.vocabulary[w] == "" {
						x.vocabulary[w] = stem(w)
					}
					counts[x.vocabulary[w]] += weight
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
	}
	for w, stem := range x.vocabulary {
		x.entries = append(x.entries, entry{w, stem})
	}
	x.weigh(lengths)
	return x
}

// weigh turns the weights of the postings into scores.
func (x *Index) weigh(lengths []float64) {
	average := 0.0
	for _, n := range lengths {
		average += n / float64(len(lengths))
	}
	for w, all := range x.postings {
		n := float64(len(all))
		x.rarity[w] = math.Log(1 + (float64(x.documents)-n+0.5)/(n+0.5))
		for i, p := range all {
			norm := 1 - byLength + byLength*lengths[p.document]/average
			all[i].score = x.rarity[w] * p.score * (saturation + 1) / (p.score + saturation*norm)
		}
	}
}

// initialism is the prefix that distinguishes the postings of initials from those of words. No word contains it.
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
	scores, found := make([]float64, x.documents), make([]int, x.documents)
	best, one := make([]float64, x.documents), make([]float64, x.documents)
	for _, t := range asked {
		clear(best)
		for _, word := range t.words {
			x.match(word, one)
			for document, score := range one {
				best[document] += score
			}
		}
		if t.joined != "" {
			x.match(t.joined, one)
			for document, score := range one {
				best[document] = max(best[document], score)
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

// match sets the score of each document for one word of a query.
func (x *Index) match(word string, scores []float64) {
	clear(scores)
	weight := 1.0
	if x.light[word] {
		weight = lightWeight
	}
	for stem, likeness := range x.forms(word) {
		for _, p := range x.postings[stem] {
			scores[p.document] = max(scores[p.document], likeness*p.score*weight)
		}
	}
}

// term is a part of a query: usually a single word. Two or three words in a row that may mean one, such as look up,
// time zone or who am I, are a single term, for which a document with that word is as good as one with all of the
// words.
type term struct {
	words  []string // without fillers
	joined string   // the one word, or ""
}

// longestQuery is how many bytes of a query are considered.
const longestQuery = 1000

// meaning returns the terms of a query without fillers, or all words if there are only fillers.
func (x *Index) meaning(query string) []term {
	asked := words(query[:min(len(query), longestQuery)])
	terms := x.terms(asked)
	if len(terms) == 0 {
		for _, word := range asked {
			terms = append(terms, term{words: []string{word}})
		}
	}
	return terms
}

func (x *Index) terms(asked []string) (all []term) {
	filler := func(word string) bool { return x.fillers[word] }
	for len(asked) > 0 {
		used, t := 1, term{}
		for n := min(3, len(asked)); n > 1; n-- {
			one := strings.Join(asked[:n], "")
			if len(one) > 3 && x.vocabulary[one] != "" && (!filler(asked[0]) || !slices.ContainsFunc(asked[:n], func(w string) bool { return !filler(w) })) {
				used, t.joined = n, one
				break
			}
		}
		t.words = slices.DeleteFunc(slices.Clone(asked[:used]), filler)
		if len(t.words) > 0 || t.joined != "" {
			all = append(all, t)
		}
		asked = asked[used:]
	}
	return all
}
