package store

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// This file is what can be searched for. The words of titles and messages are rows of their own, per
// person: a search reads nobody else's, and both databases find the same. Case, width and accents do
// not count. Scripts without spaces (Han, Kana, Thai …) are split into overlapping pairs of characters.

const (
	maxWord   = 40     // characters; the rest of a longer one is not searched
	maxText   = 64_000 // bytes of one message that are searched
	maxTerms  = 8      // words of a search that count
	minPrefix = 3      // characters from which on a search's last word may be the beginning of one
)

// index adds the words of texts to what a conversation is found by.
func (d dialect) index(ctx context.Context, tx *sql.Tx, shelf, conversation, number int64, texts ...string) error {
	words := distinct(texts...)
	if len(words) == 0 {
		return nil
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO words (conversation, word, shelf, number) `+d.words+` ON CONFLICT (conversation, word) DO NOTHING`,
		conversation, list(words), shelf, number)
	return err
}

// distinct returns the words of texts, each once, in the order of the bytes: rows that lie together
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

// term is a range of words that one word of a search stands for: from low on, before high.
type term struct{ low, high []byte }

func exactly(word string) term { return term{[]byte(word), []byte(word + "\x00")} }

func startingWith(word string) term { return term{[]byte(word), []byte(word + "\xff")} } // which no UTF-8 holds

func (t term) exact() bool { return t.high[len(t.high)-1] == 0 }

// terms are what a search asks for; every one must be met. There are none in a search without a
// letter or digit.
func terms(search string) []term {
	words := split(search)
	var all []term
	for i, word := range words {
		runes := []rune(word)
		dense := spaceless(runes[0])
		if dense && len(runes) == 1 && i > 0 && words[i-1] != word && strings.HasSuffix(words[i-1], word) {
			continue // the second half of the pair before
		}
		one := exactly(word)
		if dense && len(runes) == 1 || !dense && i == len(words)-1 && len(runes) >= minPrefix && !strings.HasSuffix(search, " ") {
			one = startingWith(word)
		}
		all = append(all, one)
	}
	return all[:min(len(all), maxTerms)]
}
