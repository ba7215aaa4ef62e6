package chat

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
)

// printer prints one run: the answer to out, everything else to notes. On a terminal it renders the answer's
// Markdown; otherwise it prints the answer unchanged.
type printer struct {
	seen   int  // number of events
	failed bool // an event was an error, or could not be printed
	*session
	mu           sync.Mutex    // held while something is printed
	started      chan struct{} // closed when conversation is known
	asking       atomic.Bool   // a question is waiting to be answered, and mu is held
	queued       bool          // a message is waiting for the run to end
	out          io.Writer
	notes        *cli.Output
	markdown     *markdown // for an answer on a styled terminal; may be nil
	conversation string
	open         bool // the answer's last line has no line break yet
	done         bool
}

func newPrinter(s *session) *printer {
	p := &printer{session: s, started: make(chan struct{}), out: s.cmd.OutOrStdout(), notes: cli.NewOutput(s.cmd.ErrOrStderr())}
	if out := cli.NewOutput(p.out); out.IsStyled() {
		p.markdown = &markdown{out: out}
	}
	return p
}

func (p *printer) text(d delta) error {
	if p.json || d.Text == "" {
		return nil
	}
	if p.markdown != nil {
		return p.markdown.write(cli.Printable(d.Text))
	}
	p.open = d.Text[len(d.Text)-1] != '\n'
	if cli.IsTerminal(p.out) {
		d.Text = cli.Printable(d.Text)
	}
	_, err := io.WriteString(p.out, d.Text)
	return err
}

// breakLine adds a line break to the answer's last line.
func (p *printer) breakLine() {
	if p.markdown != nil && p.markdown.open() {
		_ = p.markdown.endLine()
	}
	if p.open {
		_, _ = io.WriteString(p.out, "\n") // the next write reports a broken pipe
		p.open = false
	}
}

// note prints a line that is not part of the answer.
func (p *printer) note(format string, args ...any) {
	if p.json {
		return
	}
	p.breakLine()
	p.notes.Line("%s", p.notes.Faint(cli.Printable(fmt.Sprintf(format, args...))))
}

func (p *printer) compacted(d delta) error {
	p.note("The conversation is long: from now on, the model gets a summary instead of its older messages: %s", shorten(strings.Join(strings.Fields(d.Text), " ")))
	return nil
}

func (p *printer) toolStart(t toolStart) error {
	p.note("→ %s %s", t.Name, shorten(string(t.Input)))
	return nil
}

func (p *printer) toolProgress(t toolProgress) error {
	switch {
	case t.Message != "":
		p.note("  %s", t.Message)
	case t.Total > 0:
		p.note("  %.0f %%", 100*t.Progress/t.Total)
	}
	return nil
}

func (p *printer) toolDone(t toolDone) error {
	mark := "✓"
	if !t.OK {
		mark = "✗"
	}
	p.note("%s %s (%d ms) %s", mark, t.Name, t.MS, shorten(strings.TrimSpace(t.Output)))
	return nil
}

func (p *printer) finish(r result) error {
	p.breakLine()
	cost := ""
	if r.Usage.CostUSD != nil {
		cost = fmt.Sprintf(", $%.4f", *r.Usage.CostUSD)
	}
	stop := ""
	if r.StopReason != "complete" {
		stop = ", stopped: " + r.StopReason
	}
	p.note("%s · %s · %d + %d tokens%s%s", r.ConversationID, r.Usage.Model, r.Usage.InputTokens, r.Usage.OutputTokens, cost, stop)
	return nil
}

func shorten(text string) string {
	if r := []rune(text); len(r) > 120 {
		return string(r[:119]) + "…"
	}
	return text
}
