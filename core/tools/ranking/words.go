package ranking

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/kljensen/snowball/english"
)

// words splits text into words in lower case: at characters that are neither letters nor digits, and before a capital
// letter that starts a new word of a name (getUser, HTTPServer).
func words(text string) (all []string) {
	var word []rune
	flush := func() {
		if len(word) > 0 {
			all = append(all, strings.ToLower(string(word)))
			word = word[:0]
		}
	}
	runes := []rune(text)
	for i, r := range runes {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			flush()
			continue
		}
		if unicode.IsUpper(r) && i > 0 {
			next := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if unicode.IsLower(runes[i-1]) || unicode.IsUpper(runes[i-1]) && next {
				flush()
			}
		}
		word = append(word, r)
	}
	flush()
	return all
}

// stem returns the part that a word has in common with its other forms.
func stem(word string) string { return english.Stem(word, false) }

// fillers are query words that do not describe the wanted tool.
const fillers = `
a an the this that these those some any all each my your our their his her its me you us them it i we he she they
of in on at to for from by with about into over under after before between as am is are was were be been do does did
and or not no if then so than can could would should will may might must shall have has had
what which who whom whose where when why how there here
say tell let tool tools please want need help use using like one something someone thing things way able
`

// light are verbs that mean little in a query, but are rare in the names of tools.
const light = `put take make give keep bring turn come go`

func setOf(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range words(text) {
		set[w] = true
	}
	return set
}

//go:embed alike.txt
var alike string

// wordGroups contains the words of alike.txt.
type wordGroups struct {
	stems    map[string]string   // the stem of each word
	synonyms map[string][]string // from the stem of each word to the stems of the other words in its groups
}

// thesaurus parses alike.txt, once.
var thesaurus = sync.OnceValue(func() wordGroups { //nolint:gochecknoglobals // it never changes, and takes milliseconds
	t := wordGroups{map[string]string{}, map[string][]string{}}
	for line := range strings.Lines(alike) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		group := words(line)
		for _, w := range group {
			t.stems[w] = stem(w)
		}
		for _, a := range group {
			for _, b := range group {
				if a, b := t.stems[a], t.stems[b]; a != b && !slices.Contains(t.synonyms[a], b) {
					t.synonyms[a] = append(t.synonyms[a], b)
				}
			}
		}
	}
	return t
})
