package layer

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// The messages of the YAML package that this file explains. Those of a kind are located in the same way.
const (
	noKey        = "did not find expected key"
	noItem       = "did not find expected '-' indicator"
	noStart      = "did not find expected <document start>"
	noListEnd    = "did not find expected ',' or ']'"
	noMappingEnd = "did not find expected ',' or '}'"
	noContent    = "did not find expected node content"
	noAnchor     = "unknown anchor"
	noQuote      = "found unexpected end of stream"
	noColon      = "could not find expected ':'"
	noToken      = "found character that cannot start any token"
	noMapping    = "mapping values are not allowed in this context"
	noEscape     = "found unknown escape character"
	noDocument   = "found unexpected document indicator" // in a quoted text
	noTag        = "found undefined tag handle"
	tabInText    = "found a tab character that violates indentation"
	tabInBlock   = "found a tab character where an indentation space is expected"
)

// explanations say in the words of a person who edits the file what each message means, and what to do. They hold no
// text of the file, which may be a secret.
func explanations() map[string]string {
	const (
		tab   = "there is a tab in the indentation of this line: YAML is indented with spaces"
		quote = "the quoted text that begins here has no closing quote"
	)
	return map[string]string{
		noKey:      "a key is expected here: begin the keys of one mapping in the same column, and let nothing follow a closing quote or bracket",
		noItem:     "an item of a list is expected here: begin the items of one list with - in the same column",
		noStart:    "nothing can follow here: begin the keys of one mapping in the same column",
		noContent:  "a value is expected here: quote a text that begins with a comma, a bracket or a brace",
		noAnchor:   "* begins an alias, and there is no anchor (&) of its name before it: quote a text that begins with *",
		noQuote:    quote,
		noColon:    "a \":\" is expected after this key",
		noToken:    noToken + " (YAML is indented with spaces, not with tabs; quote texts that begin with @, ` or %)",
		noMapping:  "a \":\" is not allowed here: indent this line as the keys beside it, look for a missing \":\" on the line before, or quote a text that has \": \" in it",
		noEscape:   "there is no such escape: write \\\\ for a backslash between double quotes, or use single quotes",
		noDocument: quote + " before the --- or ... of a document",
		noTag:      "! begins a tag, and there is none of this name: quote a text that begins with !",
		tabInText:  tab,
		tabInBlock: tab,
	}
}

// syntax adds the problem of a text that is not YAML.
func (r *reader) syntax(text string) {
	f := findFault(strings.TrimPrefix(text, "\ufeff"), maxSearched)
	at := ""
	if f.column > 0 {
		at = fmt.Sprintf("column %d: ", f.column)
	}
	if key := lineKey(f.text); key != "" {
		at += fmt.Sprintf("at %q: ", key)
	}
	place := Place{Source: r.file, Line: f.line, Column: f.column}
	r.Problems = append(r.Problems, Problem{Place: place, Message: "not YAML: " + at + f.message})
}

// fault is where a text stops being YAML, and why.
type fault struct {
	line, column int    // 1-based; 0 when it is not known
	text         string // the line
	message      string
}

// findFault finds the place of the first fault. The YAML package counts some lines from 0, some from 1, says for
// others where the surrounding mapping begins, and names no column. What it says of a part of the text shows the rest:
// in all its attempts the search parses at most so many bytes.
func findFault(text string, bytes int) fault {
	if f, found := unreadable(text); found {
		return f
	}
	s := &search{text: text, lines: strings.SplitAfter(text, "\n"), left: bytes}
	message, named := parse(text)
	f := fault{message: message}
	if explained, known := explanations()[kind(message)]; known {
		f.message = explained
	}
	f.line = s.line(message, named)
	columned := true
	switch kind(message) {
	case noListEnd, noMappingEnd: // an open bracket may be anywhere on its line
		f.message, columned = s.unclosed(message, f.line), false
	case noTag: // which is wrong in another way when it is cut off
		columned = false
	case noContent:
		if s.inside {
			f.message = "the file ends inside a list or mapping: close it with ] or }"
		}
	}
	if f.line < 1 || f.line > len(s.lines) {
		f.line = 0
		return f
	}
	f.text = strings.TrimSpace(s.lines[f.line-1])
	if columned {
		f.column = s.column(f.line, message)
	}
	return f
}

// maxSearched is how many bytes the search for one place parses, in all the parts of a text that it tries. It ends
// without a column, or with the line that the YAML package names, when it would need more.
const maxSearched = 4 << 20

// search is the search for the place of a fault.
type search struct {
	text   string
	lines  []string // of text, with their ends
	left   int      // bytes that may still be parsed; negative when the search has ended
	inside bool     // the text ends inside a list or mapping
}

// parse is the function parse within the bounds of the search; searched is false beyond them.
func (s *search) parse(text string) (message string, line int, searched bool) {
	if s.left -= len(text); s.left < 0 {
		return "", 0, false
	}
	message, line = parse(text)
	return message, line, true
}

// line returns the line of the fault that has a message, for which the YAML package names a line; 0 when neither is known.
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
	case slices.Contains([]string{noKey, noItem, noStart, noTag}, message): // of the parser
		return named + 1
	}
	return named
}

// tabbed returns the first line from one on that is indented with a tab; that one when there is none.
func (s *search) tabbed(from int) int {
	for i := max(from-1, 0); i < len(s.lines); i++ {
		if strings.HasPrefix(strings.TrimLeft(s.lines[i], " "), "\t") {
			return i + 1
		}
	}
	return from
}

// shifted is the line that the YAML package names for the text after an empty line, for it names another place for a
// fault on the first line. Beyond the bounds of the search it is the line after the one that it named. Its parser counts
// lines from 0, so shifted is the line of the fault; its scanner counts them from 1.
func (s *search) shifted(named int) int {
	if _, line, searched := s.parse("\n" + s.text); searched {
		return line
	}
	return named + 1
}

// opened returns the line of the outermost bracket that is open where the text ends; 0 when none is. It lets the YAML
// package say which bracket is open, closes it, and asks again.
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

var syntaxLine = regexp.MustCompile(`^line (\d+): (.*)$`)

// parse returns what the YAML package finds wrong with a text, and the line that it names.
func parse(text string) (message string, line int) {
	dec := yaml.NewDecoder(strings.NewReader(text))
	for {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return "", 0
		}
		if err == nil {
			continue
		}
		message = strings.TrimPrefix(err.Error(), "yaml: ")
		if m := syntaxLine.FindStringSubmatch(message); m != nil {
			line, _ = strconv.Atoi(m[1])
			message = m[2]
		}
		return message, line
	}
}

// kind is a message without the name of an anchor.
func kind(message string) string {
	if strings.HasPrefix(message, noAnchor) {
		return noAnchor
	}
	return message
}

// unreadable finds what is not UTF-8, and characters that YAML does not allow.
func unreadable(text string) (fault, bool) {
	f := fault{line: 1, column: 1}
	for i, c := range text {
		_, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case c == utf8.RuneError && size == 1:
			f.message = "the file is not UTF-8: save it in that encoding"
			return f, true
		case c == '\n':
			f.line, f.column = f.line+1, 0
		case unicode.IsControl(c) && c != '\t' && c != '\r' && c != '\u0085':
			f.message = fmt.Sprintf("the control character %U is not allowed", c)
			return f, true
		}
		f.column++
	}
	return fault{}, false
}

// unclosed explains a bracket that is not closed on its line, which is 0 when it is not known.
func (s *search) unclosed(message string, line int) string {
	bracket, closing := "[", "]"
	if message == noMappingEnd {
		bracket, closing = "{", "}"
	}
	said := fmt.Sprintf("a %q on this line is not closed with %q, or a comma is missing", bracket, closing)
	if s.left -= len(s.text); s.left < 0 {
		return said
	}
	until := 1 + strings.Count(s.text[:consumed(s.text)], "\n")
	switch {
	case until == line:
		return said
	case until <= strings.Count(s.text, "\n"):
		return fmt.Sprintf("%s between here and line %d", said, until)
	}
	return said + " between here and the end of the file"
}

// consumed says how much of a text was read when it was found to be wrong.
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

// column is the first column of a line from which on the text, cut off there, is wrong in the same way; 0 when that
// is not known.
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

var settingKey = regexp.MustCompile(`^(?:- +)?([A-Za-z_][A-Za-z0-9_.-]{0,63}:)(?:\s|$)`)

// lineKey is the key that a line begins with, "" without one. The rest of a line may be a secret.
func lineKey(line string) string {
	if m := settingKey.FindStringSubmatch(line); m != nil {
		return m[1]
	}
	return ""
}
