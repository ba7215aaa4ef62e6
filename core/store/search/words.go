package search

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// This file splits texts into the words of the index. Case, width and accents do not matter. Scripts
// without spaces (Han, Kana, Thai …) are split into overlapping pairs of characters.

const (
	maxWord   = 40     // characters; the rest of a longer one is not searched
	maxText   = 64_000 // bytes of one message that are searched
	maxTerms  = 8      // words of a query that count
	minPrefix = 3      // characters from which on the last word of a query also matches as a prefix
)

// distinct returns the words of texts, each once, in the order of their bytes: neighbouring rows
// are written together.
func distinct(texts ...string) []string {
	var words []string
	for _, text := range texts {
		words = append(words, split(text)...)
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// split returns the words of a text in their order.
func split(text string) []string {
	if len(text) > maxText {
		text = text[:maxText]
	}
	var words []string
	var word []rune
	var dense bool // whether word is of a script without spaces
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

// Term is a range of words that one word of a query matches: from low on, before high.
type Term struct{ low, high []byte }

func exactly(word string) Term { return Term{[]byte(word), []byte(word + "\x00")} }

func startingWith(word string) Term { return Term{[]byte(word), []byte(word + "\xff")} } // which no UTF-8 holds

func (t Term) exact() bool { return t.high[len(t.high)-1] == 0 }

// Terms returns what a query asks for: a conversation must match each term. There are none in a query
// without a letter or digit.
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
