package chat

import (
	"io"
	"regexp"
	"strings"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
)

// markdown renders Markdown on a terminal as it arrives. It determines the type of each line (heading, list
// item, quote, code, text) on its own, because a block may take a long time to end. Emphasis, code and links
// within a line are left to the parser. It writes the words of a line up to the last point where all markers
// are closed, and holds back the rest.
type markdown struct {
	out   *cli.Output
	begun bool                // the start of the line has been written
	rest  string              // the part of the line that has not been written
	fence string              // the marker that ends the code block; "" outside a code block
	style func(string) string // style of the current line
}

var (
	fence   = regexp.MustCompile("^ {0,3}(```+|~~~+)")
	heading = regexp.MustCompile(`^#{1,6}[ \t]+`)
	rule    = regexp.MustCompile(`^ {0,3}([-*_])[ \t]*(?:[-*_][ \t]*){2,}$`)
	item    = regexp.MustCompile(`^([ \t]*)[-*+][ \t]+`)
	quote   = regexp.MustCompile(`^ {0,3}>[ \t]?`)
	number  = regexp.MustCompile(`^[ \t]*\d{1,9}[.)][ \t]+`)
)

// write adds the next piece of the text.
func (m *markdown) write(text string) error {
	for {
		line, after, ends := strings.Cut(text, "\n")
		m.rest += line
		if !ends {
			return m.advance()
		}
		if err := m.endLine(); err != nil {
			return err
		}
		text = after
	}
}

// open reports whether the current line contains text.
func (m *markdown) open() bool { return m.begun || m.rest != "" }

// endLine writes the rest of the line and a line break.
func (m *markdown) endLine() error {
	var line string
	switch {
	case m.begun:
		line = m.style(m.inline(m.rest))
	case m.fence != "":
		line = m.code(m.rest)
	case fence.MatchString(m.rest):
		m.fence = fence.FindStringSubmatch(m.rest)[1]
		line = m.out.Faint(m.rest)
	case rule.MatchString(m.rest):
		line = m.out.Faint(strings.Repeat("─", 40))
	case strings.HasPrefix(strings.TrimLeft(m.rest, " "), "|"):
		line = m.rest // a table row, whose columns are already aligned
	default:
		line = m.begin()
		line += m.style(m.inline(m.rest))
	}
	m.begun, m.rest = false, ""
	_, err := io.WriteString(m.out, line+"\n")
	return err
}

// code renders a line of a code block, or the line that ends it.
func (m *markdown) code(line string) string {
	if end := strings.TrimSpace(line); strings.HasPrefix(end, m.fence) && strings.Trim(end, m.fence[:1]) == "" {
		m.fence = ""
		return m.out.Faint(line)
	}
	return m.out.Code(line)
}

// begin removes the markers at the start of the line from rest and renders them. It sets the style of the text
// that follows.
func (m *markdown) begin() string {
	m.style = func(text string) string { return text }
	switch {
	case heading.MatchString(m.rest):
		m.style = m.out.Bold
		m.rest = strings.TrimRight(heading.ReplaceAllString(m.rest, ""), "# \t")
		return ""
	case item.MatchString(m.rest):
		indent := item.FindStringSubmatch(m.rest)[1]
		m.rest = item.ReplaceAllString(m.rest, "")
		return indent + "• "
	case quote.MatchString(m.rest):
		m.style = m.out.Faint
		m.rest = quote.ReplaceAllString(m.rest, "")
		return m.out.Faint("│ ")
	}
	marker := number.FindString(m.rest)
	m.rest = m.rest[len(marker):]
	return marker
}

// advance writes the part of an unfinished line that can no longer change: the words up to the last space
// before which all markers are closed. It writes nothing for a heading, a quote, code, a rule or a table row.
func (m *markdown) advance() error {
	line := ""
	if !m.begun {
		start := strings.TrimLeft(m.rest, " \t")
		if m.fence != "" || len(start) < 16 || strings.ContainsAny(start[:1], "#>|`~_=") || rule.MatchString(m.rest) {
			return nil
		}
		line = m.begin()
	}
	at := strings.LastIndexByte(m.rest, ' ')
	for at > 0 && !closed(m.rest[:at]) {
		at = strings.LastIndexByte(m.rest[:at], ' ')
	}
	if at > 0 {
		line += m.inline(m.rest[:at])
		m.rest = m.rest[at:]
	}
	m.begun = m.begun || line != ""
	_, err := io.WriteString(m.out, line)
	return err
}

// closed reports whether every marker in the text is closed.
func closed(text string) bool {
	if strings.ContainsAny(text, `\<`) {
		return false
	}
	for _, pair := range []string{"**", "__", "~~", "*", "_", "`"} {
		if strings.Count(text, pair)%2 != 0 {
			return false
		}
		text = strings.ReplaceAll(text, pair, "")
	}
	return strings.Count(text, "[") == strings.Count(text, "]") && strings.Count(text, "(") == strings.Count(text, ")")
}
