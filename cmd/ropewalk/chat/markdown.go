package chat

import (
	"io"
	"regexp"
	"strings"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
)

// markdown writes Markdown to a terminal as it arrives. It decides line by line what a line is (heading, item,
// quote, code, text), because a block may take long to end, and leaves emphasis, code and links within a line
// to the parser. It writes the words of a line whose markers are closed and holds the others back.
type markdown struct {
	out   *cli.Output
	begun bool                // the line's beginning has been written
	rest  string              // the part of the line that is not written yet
	fence string              // what ends the code block; "" outside of one
	style func(string) string // for the line
}

var (
	fence   = regexp.MustCompile("^ {0,3}(```+|~~~+)")
	heading = regexp.MustCompile(`^#{1,6}[ \t]+`)
	rule    = regexp.MustCompile(`^ {0,3}([-*_])[ \t]*(?:[-*_][ \t]*){2,}$`)
	item    = regexp.MustCompile(`^([ \t]*)[-*+][ \t]+`)
	quote   = regexp.MustCompile(`^ {0,3}>[ \t]?`)
	number  = regexp.MustCompile(`^[ \t]*\d{1,9}[.)][ \t]+`)
)

// write takes the next piece of the text.
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

// open reports whether a line has begun.
func (m *markdown) open() bool { return m.begun || m.rest != "" }

// endLine writes the rest of the line and its end.
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
		line = m.rest // a row of a table, whose columns are aligned as it is
	default:
		line = m.begin()
		line += m.style(m.inline(m.rest))
	}
	m.begun, m.rest = false, ""
	_, err := io.WriteString(m.out, line+"\n")
	return err
}

// code renders a line of a block of code, or its last line.
func (m *markdown) code(line string) string {
	if end := strings.TrimSpace(line); strings.HasPrefix(end, m.fence) && strings.Trim(end, m.fence[:1]) == "" {
		m.fence = ""
		return m.out.Faint(line)
	}
	return m.out.Code(line)
}

// begin takes the markers at the beginning of the line from rest, renders them, and sets the style of
// what follows.
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

// advance writes what is certain of a line that has not ended: nothing of a heading, a quote, code, a rule
// or a row of a table, of other lines the words before the last space whose markers are closed.
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
