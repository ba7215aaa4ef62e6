package logs

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// These limit how much of a process's stderr is kept in memory: the current line and the last lines.
const (
	maxLine   = 16 << 10 // bytes; a longer line is written in pieces
	tailLines = 20
	tailBytes = 4 << 10
)

// Output receives the stderr of a process. It removes secrets, writes each line to the log and keeps the last lines.
// Lines that cannot be logged are dropped, so that a process never blocks on stderr and a flood of output fills neither
// memory nor disk.
type Output struct {
	redactor Redactor
	log      io.WriteCloser

	mu   sync.Mutex
	line []byte
	tail []string
}

// NewOutput returns an Output that writes to log. Close also closes log.
func NewOutput(log io.WriteCloser, r Redactor) *Output { return &Output{redactor: r, log: log} }

// Write never returns an error.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(p)
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		size, whole := len(p), false
		if end >= 0 {
			size, whole = end, true
		}
		if free := maxLine - len(o.line); size > free {
			size, whole = free, false
		}
		o.line = append(o.line, p[:size]...)
		p = p[size:]
		if whole {
			p = p[1:]
		}
		if whole || len(o.line) >= maxLine {
			o.flushLine()
		}
	}
	return n, nil
}

func (o *Output) flushLine() {
	text := o.redactor.Text(string(bytes.TrimRight(o.line, "\r")))
	o.line = o.line[:0]
	_, _ = o.log.Write([]byte(text + "\n")) // a full disk must not stop the app
	if strings.TrimSpace(text) == "" {
		return
	}
	if len(text) > tailBytes {
		text = text[:tailBytes]
	}
	o.tail = append(o.tail, text)
	if len(o.tail) > tailLines {
		o.tail = append(o.tail[:0], o.tail[1:]...)
	}
}

// Tail returns the last lines of output, at most 20 lines and 4 KiB. It is "" if there are none.
func (o *Output) Tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.line) > 0 {
		o.flushLine()
	}
	text := strings.Join(o.tail, "\n")
	if len(text) > tailBytes {
		text = text[len(text)-tailBytes:]
	}
	return strings.ToValidUTF8(text, "")
}

// Close writes an incomplete last line and closes the log.
func (o *Output) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.line) > 0 {
		o.flushLine()
	}
	return o.log.Close()
}
