package search

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// This file splits text into the words in the index. Case, width and accents are ignored. Scripts without
// spaces (Han, Kana, Thai …) are split into overlapping pairs of characters.

const (
	maxWord   = 40     // in characters; the rest of a longer word is not searched
	maxText   = 64_000 // bytes of one text; the rest is not searched
	maxTerms  = 8      // words of a query; the rest is ignored
	minPrefix = 3      // in characters; the last word of a query also matches as a prefix if it is at least this long
)

// distinct returns the words of texts without duplicates, in byte order, so that neighboring rows are written
// together.
func distinct(texts ...string) []string {
	var words []string
	for _, text := range texts {
		words = append(words, split(text)...)
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// split returns the words of text, in order.
func split(text string) []string {
	if len(text) > maxText {
		text = text[:maxText]
	}
	var words []string
	var word []rune
	var dense bool // whether word is in a script without spaces
	end := func() {
		if len(word) > 0 {
			words = appendWord(words, word, dense)
		}
		word = word[:0]
	}
	for _, r := range norm.NFKD.String(text) {
		switch {
		case unicode.Is(unicode.Mn, r): // an accent
		case !unicode.IsLetter(r) && !unicode.IsNumber(r) || r == utf8.RuneError:
			end()
		default:
			if spaceless(r) != dense {
				end()
				dense = !dense
			}
			word = append(word, unicode.ToLower(r))
		}
	}
	end()
	return words
}

func appendWord(words []string, word []rune, dense bool) []string {
	if !dense {
		return append(words, string(word[:min(len(word), maxWord)]))
	}
	for i := range word {
		words = append(words, string(word[i:min(i+2, len(word))]))
	}
	return words
}

func spaceless(r rune) bool {
	return r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// Term is the range of words that one word of a query matches, from low (inclusive) to high (exclusive).
type Term struct{ low, high []byte }

func exactly(word string) Term { return Term{[]byte(word), []byte(word + "\x00")} }

func startingWith(word string) Term { return Term{[]byte(word), []byte(word + "\xff")} } // a byte that never occurs in UTF-8

func (t Term) exact() bool { return t.high[len(t.high)-1] == 0 }

// Terms returns the terms of a query. A conversation must match each of them. A query without a letter or digit
// has no terms.
func Terms(query string) []Term {
	words := split(query)
	var all []Term
	for i, word := range words {
		runes := []rune(word)
		dense := spaceless(runes[0])
		if dense && len(runes) == 1 && i > 0 && words[i-1] != word && strings.HasSuffix(words[i-1], word) {
			continue // the second half of the previous pair
		}
		one := exactly(word)
		if dense && len(runes) == 1 || !dense && i == len(words)-1 && len(runes) >= minPrefix && !strings.HasSuffix(query, " ") {
			one = startingWith(word)
		}
		all = append(all, one)
	}
	return all[:min(len(all), maxTerms)]
}
