package prose

import (
	"bufio"
	"bytes"
	"fmt"
	"regexp"
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
func check(rules []compiled, file string, text []byte) []finding {
	var all []finding
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 16<<20)
	for n := 1; lines.Scan(); n++ {
		written := lines.Text()
		plain := words(written)
		for _, r := range rules {
			word := r.match.FindString(plain)
			if word == "" || r.except != nil && r.except.MatchString(written) {
				continue
			}
			all = append(all, finding{file: file, line: n, word: word, use: r.use})
		}
	}
	return all
}
