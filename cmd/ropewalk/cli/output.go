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

// Output writes for people: aligned tables, and colour where it is welcome.
type Output struct {
	io.Writer
	colour bool
}

// NewOutput returns an Output over w.
func NewOutput(w io.Writer) *Output {
	return &Output{Writer: w, colour: IsTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Line writes a formatted line.
func (o *Output) Line(format string, args ...any) {
	_, _ = fmt.Fprintf(o, format+"\n", args...)
}

// Table writes rows below a header, with columns as wide as they need to be.
func (o *Output) Table(header []string, rows [][]string) error {
	all := append([][]string{header}, rows...)
	widths := make([]int, len(header))
	for _, row := range all {
		for i, cell := range row {
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

// State colours the name of a state, and leaves other text as it is.
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

// Count returns a number of things, such as "1 tool".
func Count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return strconv.Itoa(n) + " " + thing
}

// Faint renders text that matters less.
func (o *Output) Faint(text string) string { return o.paint("2", text) }

func (o *Output) paint(code, text string) string {
	if !o.colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
