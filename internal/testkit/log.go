package testkit

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"
)

// Log collects what many goroutines write, for a test to read at any time. The zero value is ready.
type Log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write appends p.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// Close does nothing: the log stays readable.
func (*Log) Close() error { return nil }

// String returns everything written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// Reset forgets what was written.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf.Reset()
}

// Contains reports whether text was written.
func (l *Log) Contains(text string) bool { return strings.Contains(l.String(), text) }

// Lines returns the complete lines written so far, without their line breaks.
func (l *Log) Lines() []string {
	var lines []string
	for line := range strings.Lines(l.String()) {
		if text, complete := strings.CutSuffix(line, "\n"); complete {
			lines = append(lines, text)
		}
	}
	return lines
}

// Entries returns the lines that are JSON objects, as Logger with json writes them.
func (l *Log) Entries() []map[string]any {
	var entries []map[string]any
	for _, line := range l.Lines() {
		var e map[string]any
		if json.Unmarshal([]byte(line), &e) == nil {
			entries = append(entries, e)
		}
	}
	return entries
}

// Logger returns a logger that writes to l at the given level, as JSON if json is true.
func (l *Log) Logger(level hclog.Level, json bool) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Output: l, Level: level, JSONFormat: json})
}
