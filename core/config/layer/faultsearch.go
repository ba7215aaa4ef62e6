package layer

import (
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// maxSearched is how many bytes the search for one place may parse, over all the parts of the text that it tries.
// If it would need more, it gives up and returns no column, or the line that the YAML package reports.
const maxSearched = 4 << 20

// search finds the place of a fault.
type search struct {
	text   string
	lines  []string // the lines of text, including line endings
	left   int      // bytes that may still be parsed; negative when the search is over
	inside bool     // the text ends inside a list or mapping
}

// parse is the function parse within the search's budget. searched is false once the budget is used up.
func (s *search) parse(text string) (message string, line int, searched bool) {
	if s.left -= len(text); s.left < 0 {
		return "", 0, false
	}
	message, line = parse(text)
	return message, line, true
}

// line returns the line of the fault with this message. named is the line that the YAML package reports. The
// result is 0 if neither is known.
func (s *search) line(message string, named int) int {
	switch kind(message) {
	case noListEnd, noMappingEnd:
		return s.shifted(named)
	case noContent:
		if line := s.opened(); line > 0 {
			s.inside = true
			return line
		}
		return s.shifted(named)
	case noQuote, noDocument, noColon, noToken, noMapping:
		return max(s.shifted(named)-1, 0)
	}
	line := 1 + sort.Search(len(s.lines)-1, func(i int) bool {
		m, _, _ := s.parse(strings.Join(s.lines[:i+1], ""))
		return kind(m) == kind(message)
	})
	switch {
	case s.left >= 0:
		return line
	case kind(message) == tabInText, kind(message) == tabInBlock:
		return s.tabbed(named)
	case slices.Contains([]string{noKey, noItem, noStart, noTag}, message): // from the parser
		return named + 1
	}
	return named
}

// tabbed returns the first line, starting with from, that is indented with a tab, or from if there is none.
func (s *search) tabbed(from int) int {
	for i := max(from-1, 0); i < len(s.lines); i++ {
		if strings.HasPrefix(strings.TrimLeft(s.lines[i], " "), "\t") {
			return i + 1
		}
	}
	return from
}

// shifted returns the line that the YAML package reports if an empty line is inserted before the text, because it
// reports a different place for a fault on the first line. Beyond the search's budget it returns the line after
// the reported one. The parser counts lines from 0, so shifted is the line of the fault; the scanner counts
// from 1.
func (s *search) shifted(named int) int {
	if _, line, searched := s.parse("\n" + s.text); searched {
		return line
	}
	return named + 1
}

// opened returns the line of the outermost bracket still open at the end of the text, or 0. It lets the YAML
// package report which bracket is open, closes it, and asks again.
func (s *search) opened() int {
	line := 0
	for text := "\n" + strings.TrimRightFunc(s.text, unicode.IsSpace) + "\n x"; ; {
		message, named, _ := s.parse(text)
		switch message {
		case noListEnd:
			text += "]"
		case noMappingEnd:
			text += "}"
		default:
			return line
		}
		line = named
	}
}

// unclosed explains a bracket that is not closed on its line, which is 0 if unknown.
func (s *search) unclosed(message string, line int) string {
	bracket, closing := "[", "]"
	if message == noMappingEnd {
		bracket, closing = "{", "}"
	}
	problem := fmt.Sprintf("a %q on this line is not closed with %q, or a comma is missing", bracket, closing)
	if s.left -= len(s.text); s.left < 0 {
		return problem
	}
	until := 1 + strings.Count(s.text[:consumed(s.text)], "\n")
	switch {
	case until == line:
		return problem
	case until <= strings.Count(s.text, "\n"):
		return fmt.Sprintf("%s between here and line %d", problem, until)
	}
	return problem + " between here and the end of the file"
}

// consumed returns how much of the text was read before it was found to be invalid.
func consumed(text string) int {
	counter := &byteReader{text: text}
	var err error
	for dec := yaml.NewDecoder(counter); err == nil; {
		err = dec.Decode(&yaml.Node{})
	}
	return counter.read
}

// byteReader reads one byte at a time.
type byteReader struct {
	text string
	read int
}

func (b *byteReader) Read(into []byte) (int, error) {
	if b.read == len(b.text) || len(into) == 0 {
		return 0, io.EOF
	}
	into[0] = b.text[b.read]
	b.read++
	return 1, nil
}

// column returns the first column of a line at which the text, if it is cut off there, has the same fault, or 0 if
// unknown.
func (s *search) column(line int, message string) int {
	before, this := strings.Join(s.lines[:line-1], ""), []rune(strings.TrimRight(s.lines[line-1], "\r\n"))
	first := 0
	for end := len(this); end > 0; end-- {
		m, _, searched := s.parse(before + string(this[:end]))
		if !searched {
			return 0
		}
		if kind(m) != kind(message) {
			break
		}
		first = end
	}
	return first
}
