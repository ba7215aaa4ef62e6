package cli

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// Output writes human-readable output: aligned tables, and colour where appropriate.
type Output struct {
	io.Writer
	colour   bool
	terminal bool
}

// NewOutput returns an Output that writes to w.
func NewOutput(w io.Writer) *Output {
	terminal := IsTerminal(w)
	return &Output{Writer: w, terminal: terminal, colour: terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// Styled returns an Output that writes to w and uses colours and bold text even if w is not a terminal.
func Styled(w io.Writer) *Output { return &Output{Writer: w, colour: true} }

// IsTerminal reports whether w is a terminal.
func IsTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Line writes a formatted line.
func (o *Output) Line(format string, args ...any) {
	_, _ = fmt.Fprintf(o, format+"\n", args...)
}

// Text returns text from an app or a person in a form that is safe to write to a terminal.
func (o *Output) Text(text string) string {
	if o.terminal {
		return Printable(text)
	}
	return text
}

// Table writes rows below a header, with columns as wide as necessary. Each row is one line.
func (o *Output) Table(header []string, rows [][]string) error {
	all := append([][]string{header}, rows...)
	widths := make([]int, len(header))
	for _, row := range all {
		for i, cell := range row {
			cell = strings.Join(strings.FieldsFunc(o.Text(cell), isLineBreak), " ")
			row[i] = cell
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for n, row := range all {
		var line strings.Builder
		for i, cell := range row {
			text := cell
			if n == 0 {
				text = o.paint("1", cell)
			} else {
				text = o.State(text)
			}
			line.WriteString(text)
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
			}
		}
		if _, err := fmt.Fprintln(o, strings.TrimRight(line.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

func isLineBreak(r rune) bool { return r == '\n' || r == '\r' || r == '\t' }

// State colours the name of a state, and leaves other text unchanged.
func (o *Output) State(text string) string {
	switch text {
	case "running", "ok":
		return o.paint("32", text)
	case "starting", "stopped", "warning", "restarting":
		return o.paint("33", text)
	case "crashed", "dead", "error", "failed":
		return o.paint("31", text)
	}
	return text
}

// Count formats a number of things, such as "1 tool".
func Count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return strconv.Itoa(n) + " " + thing
}

// IsStyled reports whether the output shows colours and bold text.
func (o *Output) IsStyled() bool { return o.colour }

// Faint renders less important text.
func (o *Output) Faint(text string) string { return o.style("2", "22", text) }

// Bold renders headings and strong emphasis.
func (o *Output) Bold(text string) string { return o.style("1", "22", text) }

// Italic renders emphasis.
func (o *Output) Italic(text string) string { return o.style("3", "23", text) }

// Underline renders links.
func (o *Output) Underline(text string) string { return o.style("4", "24", text) }

// Code renders code.
func (o *Output) Code(text string) string { return o.style("36", "39", text) }

// style switches one text attribute on and off again, so that styles can be nested.
func (o *Output) style(on, off, text string) string {
	if !o.colour || text == "" {
		return text
	}
	return "\x1b[" + on + "m" + text + "\x1b[" + off + "m"
}

func (o *Output) paint(code, text string) string {
	if !o.colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
