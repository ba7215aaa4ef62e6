package prose

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// finding is a line that breaks a rule.
type finding struct {
	file string
	line int
	word string
	use  string
}

func (f finding) String() string {
	return fmt.Sprintf("%s:%d: %q; use %s", f.file, f.line, f.word, f.use)
}

// wordBreak is the place between the words of an identifier: "peerServer", "HTTPClient".
var wordBreak = regexp.MustCompile(`([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])`)

// words returns the line in lower case, with identifiers split into their words.
func words(line string) string {
	split := wordBreak.ReplaceAllString(line, "$1$3 $2$4")
	return strings.ToLower(strings.ReplaceAll(split, "_", " "))
}

// check returns what breaks a rule in the text of a file.
func check(rules []compiled, file string, raw []byte) []finding {
	var all []finding
	text := string(raw)
	for _, r := range rules {
		for _, b := range r.beginnings {
			for at := wordFrom(text, b, 0); at >= 0; at = wordFrom(text, b, at) {
				line, end := lineAt(text, at)
				if word := r.find(line); word != "" {
					n := 1 + strings.Count(text[:at], "\n")
					all = append(all, finding{file: file, line: n, word: word, use: r.use})
				}
				at = end // one finding for each line
			}
		}
	}
	slices.SortStableFunc(all, func(a, b finding) int { return a.line - b.line })
	return slices.CompactFunc(all, func(a, b finding) bool { return a.line == b.line && a.use == b.use })
}

// find returns the word of the line that breaks the rule, "" for none.
func (r compiled) find(line string) string {
	word := r.match.FindString(words(line))
	if word == "" || r.except != nil && r.except.MatchString(line) {
		return ""
	}
	return word
}

// lineAt returns the line that at is in, and where it ends.
func lineAt(text string, at int) (line string, end int) {
	end = len(text)
	if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
		end = at + n
	}
	return text[strings.LastIndexByte(text[:at], '\n')+1 : end], end
}
