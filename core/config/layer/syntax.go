package layer

import (
	"errors"
	"fmt"
	"io"
	"regexp"
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
)

// explanations say in the words of a person who edits the file what each message means, and what to do. They hold no
// text of the file, which may be a secret.
func explanations() map[string]string {
	return map[string]string{
		noKey:     "a key is expected here: begin the keys of one mapping in the same column, and let nothing follow a closing quote or bracket",
		noItem:    "an item of a list is expected here: begin the items of one list with - in the same column",
		noStart:   "nothing can follow here: begin the keys of one mapping in the same column",
		noContent: "a value is expected here: quote a text that begins with a comma, a bracket or a brace",
		noAnchor:  "* begins an alias, and there is no anchor (&) of its name before it: quote a text that begins with *",
		noQuote:   "the quoted text that begins here has no closing quote",
		noColon:   "a \":\" is expected after this key",
		noToken:   noToken + " (YAML is indented with spaces, not with tabs; quote texts that begin with @, ` or %)",
		noMapping: "a \":\" is not allowed here: indent this line as the keys beside it, look for a missing \":\" on the line before, or quote a text that has \": \" in it",
		noEscape:  "there is no such escape: write \\\\ for a backslash between double quotes, or use single quotes",
	}
}

// The search for a place parses parts of the text again and again, so it is bounded.
const (
	maxPrefixes = 300      // how often a part is parsed, and how many characters a line may have
	maxSearched = 64 << 10 // bytes; of a longer text only what the YAML package says is reported
)

// syntax adds the problem of a text that is not YAML.
func (r *reader) syntax(text string) {
	f := findFault(strings.TrimPrefix(text, "\ufeff"))
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
// others where the surrounding mapping begins, and names no column. What it says of a part of the text shows the rest.
func findFault(text string) fault {
	if f, found := unreadable(text); found {
		return f
	}
	message, named := parse(text)
	if len(text) > maxSearched {
		return fault{line: named, message: message}
	}
	lines := strings.SplitAfter(text, "\n")
	_, shifted := parse("\n" + text) // on the first line it would name another place
	f := fault{message: message}
	switch kind(message) {
	case noListEnd, noMappingEnd:
		f.line = shifted
		f.message = unclosed(text, message, f.line)
	case noKey, noItem, noStart, noAnchor:
		f.line = 1 + sort.Search(len(lines)-1, func(i int) bool {
			m, _ := parse(strings.Join(lines[:i+1], ""))
			return kind(m) == kind(message)
		})
	case noContent:
		if f.line = shifted; endsInside(text) {
			f.line = lastOpened(lines)
			f.message = "the file ends inside a list or mapping: close it with ] or }"
		}
	default:
		f.line = max(shifted-1, 0)
	}
	if f.line < 1 || f.line > len(lines) {
		return f
	}
	f.text = strings.TrimSpace(lines[f.line-1])
	if f.message == message || kind(message) == noContent { // an open bracket may be anywhere on its line
		f.column = column(lines, f.line, message)
	}
	if explained, known := explanations()[kind(message)]; known && f.message == message {
		f.message = explained
	}
	return f
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

// unclosed explains a bracket that is not closed on its line.
func unclosed(text, message string, line int) string {
	bracket, closing := "[", "]"
	if message == noMappingEnd {
		bracket, closing = "{", "}"
	}
	until := 1 + strings.Count(text[:consumed(text)], "\n")
	end := "the end of the file"
	if until <= strings.Count(text, "\n") {
		end = fmt.Sprintf("line %d", until)
	}
	if until == line {
		return fmt.Sprintf("a %q on this line is not closed with %q, or a comma is missing", bracket, closing)
	}
	return fmt.Sprintf("a %q on this line is not closed with %q, or a comma is missing between here and %s", bracket, closing, end)
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

// endsInside reports whether a text lacks a value only because it ends.
func endsInside(text string) bool {
	message, _ := parse(strings.TrimRightFunc(text, unicode.IsSpace) + " x")
	return message != noContent
}

// lastOpened is the line after the last one up to which the text is right; 0 when it is too far from the end.
func lastOpened(lines []string) int {
	for i := len(lines) - 1; i > max(0, len(lines)-maxPrefixes); i-- {
		if message, _ := parse(strings.Join(lines[:i], "")); message == "" {
			return i + 1
		}
	}
	if len(lines) > maxPrefixes {
		return 0
	}
	return 1
}

// column is the first column of a line from which on the text, cut off there, is wrong in the same way.
func column(lines []string, line int, message string) int {
	before, this := strings.Join(lines[:line-1], ""), []rune(strings.TrimRight(lines[line-1], "\r\n"))
	first := 0
	if len(this) > maxPrefixes {
		return 0
	}
	for end := len(this); end > 0; end-- {
		if m, _ := parse(before + string(this[:end])); kind(m) != kind(message) {
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
