package cli

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/mattn/go-runewidth"
	"golang.org/x/term"
)

// Output writes human-readable output: aligned tables, and color where appropriate.
type Output struct {
	io.Writer
	colour   bool
	terminal bool
	width    int // of the terminal; 0 means no limit
}

// NewOutput returns an Output that writes to w.
func NewOutput(w io.Writer) *Output {
	o := &Output{Writer: w, terminal: IsTerminal(w)}
	if o.terminal {
		o.colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
		o.width, _, _ = term.GetSize(int(w.(*os.File).Fd()))
	}
	return o
}

// Styled returns an Output that writes to w and uses colors and bold text even if w is not a terminal.
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

// leastProse is the width down to which a column of sentences may shrink.
const leastProse = 20

// Table writes rows below a header, with columns as wide as necessary. Each row is one line. On a terminal that is
// too narrow, columns of sentences are cut off; if that is not enough, each row becomes a Record.
func (o *Output) Table(header []string, rows [][]string) error {
	all := append([][]string{header}, rows...)
	widths, prose := make([]int, len(header)), make([]bool, len(header))
	for n, row := range all {
		for i, cell := range row {
			cell = strings.Join(strings.FieldsFunc(o.Text(cell), isLineBreak), " ")
			row[i] = cell
			prose[i] = prose[i] || n > 0 && strings.Contains(cell, " ")
			widths[i] = max(widths[i], displayWidth(cell))
		}
	}
	if o.width > 0 && !fit(widths, prose, o.width) {
		return o.records(header, rows)
	}
	for n, row := range all {
		var line strings.Builder
		for i, cell := range row {
			cell = cut(cell, widths[i])
			text := cell
			if n == 0 {
				text = o.paint("1", cell)
			} else {
				text = o.State(text)
			}
			line.WriteString(text)
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-displayWidth(cell)+2))
			}
		}
		if _, err := fmt.Fprintln(o, strings.TrimRight(line.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

// fit shrinks the widest columns of sentences until a table has the width, and reports whether that is possible.
func fit(widths []int, prose []bool, width int) bool {
	for {
		total, widest := 2*(len(widths)-1), -1
		for i, w := range widths {
			total += w
			if prose[i] && w > leastProse && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if total <= width || widest < 0 {
			return total <= width
		}
		widths[widest]--
	}
}

// cut truncates text to a width.
func cut(text string, width int) string { return runewidth.Truncate(text, width, "…") }

// displayWidth returns how many columns text takes up on a terminal.
func displayWidth(text string) int { return runewidth.StringWidth(text) }

// records writes each row of a table as a Record, without empty cells.
func (o *Output) records(header []string, rows [][]string) error {
	for n, row := range rows {
		if n > 0 {
			o.Line("")
		}
		var fields [][2]string
		for i, cell := range row {
			if cell != "" && cell != "-" {
				fields = append(fields, [2]string{header[i], cell})
			}
		}
		if err := o.Record(fields); err != nil {
			return err
		}
	}
	return nil
}

// Record writes a label and a text on each line. A text that is wider than the terminal is wrapped and stays
// aligned.
func (o *Output) Record(fields [][2]string) error {
	label := 0
	for _, f := range fields {
		label = max(label, displayWidth(f[0]))
	}
	for _, f := range fields {
		name := f[0]
		for _, line := range o.wrap(o.Text(f[1]), label+2) {
			if _, err := fmt.Fprintf(o, "%s  %s\n", o.paint("1", name)+strings.Repeat(" ", label-displayWidth(name)), o.State(line)); err != nil {
				return err
			}
			name = ""
		}
	}
	return nil
}

// wrap breaks text between words, so that each line fits next to an indentation. A word that is longer than a line,
// such as an id, stays whole: it can then be copied.
func (o *Output) wrap(text string, indentation int) []string {
	if o.width == 0 || indentation+displayWidth(text) <= o.width {
		return []string{text}
	}
	var lines []string
	for word := range strings.FieldsSeq(text) {
		last := len(lines) - 1
		if last >= 0 && indentation+displayWidth(lines[last])+1+displayWidth(word) <= o.width {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

func isLineBreak(r rune) bool { return r == '\n' || r == '\r' || r == '\t' }

// State colors the name of a state, and leaves other text unchanged.
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

// IsStyled reports whether the output shows colors and bold text.
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
