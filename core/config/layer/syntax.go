package layer

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// The YAML package's messages that this file explains.
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

// explanations describes what each message means, and what to do, in the words of someone editing the file. It
// contains no text from the file, which may be secret.
func explanations() map[string]string {
	const (
		tab   = "there is a tab in the indentation of this line; indent YAML with spaces"
		quote = "the quoted text that begins here has no closing quote"
	)
	return map[string]string{
		noKey:      "a key is expected here; begin the keys of one mapping in the same column, and put nothing after a closing quote or bracket",
		noItem:     "a list item is expected here; begin the items of one list with - in the same column",
		noStart:    "nothing can follow here; begin the keys of one mapping in the same column",
		noContent:  "a value is expected here; quote a string that begins with a comma, a bracket or a brace",
		noAnchor:   "* begins an alias, but there is no anchor (&) with its name before it; quote a string that begins with *",
		noQuote:    quote,
		noColon:    "a \":\" is expected after this key",
		noToken:    noToken + " (YAML is indented with spaces, not with tabs; quote texts that begin with @, ` or %)",
		noMapping:  "a \":\" is not allowed here; indent this line like its neighbouring keys, look for a missing \":\" on the line before, or quote a text that contains \": \"",
		noEscape:   "there is no such escape; write \\\\ for a backslash between double quotes, or use single quotes",
		noDocument: quote + " before the --- or ... of a document",
		noTag:      "! begins a tag, but there is no tag with this name; quote a string that begins with !",
		tabInText:  tab,
		tabInBlock: tab,
	}
}

// syntax adds the problem with text that is not valid YAML.
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

// fault is where text stops being valid YAML, and why.
type fault struct {
	line, column int    // 1-based; 0 if it is not known
	text         string // the line
	message      string
}

// findFault finds the place of the first fault. The YAML package counts some lines from 0, some from 1, says for
// others where the surrounding mapping begins, and names no column. findFault deduces the rest from what the package
// says about parts of the text. In all these attempts together it parses at most the given number of bytes.
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
	case noTag: // a tag that is cut off causes a different error
		columned = false
	case noContent:
		if s.inside {
			f.message = "the file ends inside a list or mapping; close it with ] or }"
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

var syntaxLine = regexp.MustCompile(`^line (\d+): (.*)$`)

// parse returns the fault that the YAML package finds in text, and the line that it reports.
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

// kind returns a message without the name of an anchor.
func kind(message string) string {
	if strings.HasPrefix(message, noAnchor) {
		return noAnchor
	}
	return message
}

// unreadable finds text that is not UTF-8, and characters that YAML does not allow.
func unreadable(text string) (fault, bool) {
	f := fault{line: 1, column: 1}
	for i, c := range text {
		_, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case c == utf8.RuneError && size == 1:
			f.message = "the file is not UTF-8; save it in that encoding"
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

var settingKey = regexp.MustCompile(`^(?:- +)?([A-Za-z_][A-Za-z0-9_.-]{0,63}:)(?:\s|$)`)

// lineKey returns the key at the beginning of a line, or "" if there is none. It leaves out the rest of the line, which
// may be a secret.
func lineKey(line string) string {
	if m := settingKey.FindStringSubmatch(line); m != nil {
		return m[1]
	}
	return ""
}
