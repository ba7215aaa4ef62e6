package ranking

import (
	"maps"
	"strings"
	"unicode"
)

// The weights of a query word that a document contains only in a different form, and of a word with little meaning.
const (
	synonymWeight      = 0.45
	prefixWeight       = 0.7
	abbreviationWeight = 0.7 // an abbreviation
	typoWeight         = 0.6 // a word with one typing error
	partWeight         = 0.7 // a part of words written as one
	lightWeight        = 0.5
)

// forms returns the stems that a query word may mean, with their weights. These are the word itself, the words that it
// may be a form of if no document contains it, and the synonyms of all of these. A synonym that is rarer than the word
// does not weigh more than the word.
func (x *Index) forms(word string) map[string]float64 {
	own := stem(word)
	meant := map[string]float64{own: 1}
	if _, known := x.postings[own]; !known {
		x.guess(word, own, meant)
	}
	all := maps.Clone(meant)
	for stem, weight := range meant {
		for _, s := range thesaurus().synonyms[stem] {
			if asked, rarity := x.rarity[stem], x.rarity[s]; asked > 0 && rarity > asked {
				all[s] = max(all[s], weight*synonymWeight*asked/rarity)
			} else {
				all[s] = max(all[s], weight*synonymWeight)
			}
		}
	}
	return all
}

// guess adds the words that a query word may stand for if no document contains it. These are words that begin with it,
// and words that it begins with. Unless a document contains one of its synonyms, they are also the words that it may
// abbreviate, misspell or join.
func (x *Index) guess(word, own string, meant map[string]float64) {
	understood := false
	for _, s := range thesaurus().synonyms[own] {
		understood = understood || len(x.postings[s]) > 0
	}
	for _, v := range x.entries {
		weight := 0.0
		switch {
		case len(own) >= 3 && strings.HasPrefix(v.stem, own), len(v.stem) >= 4 && strings.HasPrefix(own, v.stem):
			weight = prefixWeight
		case understood:
		case isAbbreviation(word, v.word):
			weight = abbreviationWeight
		default:
			if errors := min(typos(word, v.word), typos(own, v.stem)); errors < tooMany {
				weight = typoWeight / float64(max(errors, 1))
			}
		}
		if weight > 0 {
			meant[v.stem] = max(meant[v.stem], weight)
		}
	}
	if understood {
		return
	}
	meant[initialism+word] = abbreviationWeight
	for i := 3; i <= len(word)-3; i++ {
		first, second := x.vocabulary[word[:i]], x.vocabulary[word[i:]]
		if len(x.postings[first]) > 0 && len(x.postings[second]) > 0 {
			meant[first], meant[second] = partWeight, partWeight
		}
	}
}

// isAbbreviation reports whether a word is another one without its vowels and perhaps some consonants, such as msg for
// message.
func isAbbreviation(short, word string) bool {
	if len(short) < 3 || len(short) >= len(word) || short[0] != word[0] || !isASCII(word) || strings.ContainsAny(short[1:], "aeiou") {
		return false
	}
	for i := range len(short) {
		at := strings.IndexByte(word, short[i])
		if at < 0 {
			return false
		}
		word = word[at+1:]
	}
	return true
}

// isASCII reports whether each byte of a word is a letter. Only such words are checked for abbreviations and typing
// errors.
func isASCII(word string) bool {
	return strings.IndexFunc(word, func(r rune) bool { return r > unicode.MaxASCII }) < 0
}

// tooMany is the number of typing errors at which two words count as different words.
const tooMany = 3

// typos returns how many typing errors turn one word into the other. Short words differ from many others in one letter,
// so they may contain fewer errors: in a word of three letters, only their order may be wrong. An error in the first
// letter must be the only one.
func typos(a, b string) int {
	allowed := 0
	switch n := min(len(a), len(b)); {
	case n >= 6 && a[0] == b[0]:
		allowed = 2
	case n >= 4, n == 3 && strings.Trim(a, b) == "":
		allowed = 1
	}
	if allowed == 0 || !isASCII(a) || !isASCII(b) || max(len(a), len(b))-min(len(a), len(b)) > allowed {
		return tooMany
	}
	if a[0] != b[0] && a[1] != b[1] && a[0] != b[1] && a[1] != b[0] {
		return tooMany // the usual case, without counting
	}
	if errors := distance(a, b); errors <= allowed {
		return errors
	}
	return tooMany
}

// longestTypo is the length of the words that distance compares.
const longestTypo = 32

// distance returns how many letters must be added, removed, changed or swapped with their neighbour to turn a into b.
func distance(a, b string) int {
	if max(len(a), len(b)) >= longestTypo {
		return tooMany
	}
	var before, last, row [longestTypo]int
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			changed := 1
			if a[i-1] == b[j-1] {
				changed = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+changed)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
