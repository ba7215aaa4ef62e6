package pluginhost

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	lineBytes  = 64 << 10               // the longest line that is read as one, here and by go-plugin
	tailBytes  = 8 << 10                // how much of what a plugin wrote last goes into an error
	tailLines  = 20                     // and how many lines
	causeBytes = 500                    // the longest cause of a crash
	tailWait   = 200 * time.Millisecond // how long an error waits for the last of it to be read
)

// tail is a plugin's standard error on its way to the log. It keeps the end of what passed, and
// sanitizes lines that would bring the reader down.
type tail struct {
	from  *os.File
	lines *bufio.Reader
	ready []byte // of the present line, not yet passed on
	once  sync.Once
	ended chan struct{} // closed when everything has passed

	secrets secrets  // are replaced in every line
	rate    lineRate // of what is read
	printed lineRate // of what comes beside; guarded by mu

	heard io.Writer // gets everything as it was written; nil for none

	mu    sync.Mutex
	last  []byte
	cause []byte // the line with which a Go program reports its own crash; a stack follows
}

// Read passes on what the plugin wrote.
func (t *tail) Read(p []byte) (int, error) {
	for len(t.ready) == 0 {
		line, err := t.lines.ReadSlice('\n') // a line longer than the buffer comes in pieces
		if len(line) == 0 && err != nil {
			t.once.Do(func() { close(t.ended) })
			return 0, err
		}
		t.record(line)
		t.ready = t.rate.admit(time.Now(), sanitized(t.secrets.redactBytes(line)))
	}
	n := copy(p, t.ready)
	t.ready = t.ready[n:]
	return n, nil
}

// tee returns a writer for what go-plugin brings beside standard error: a plugin in Go prints through
// its connection once it serves. It is recorded as well, and written to next without secrets.
func (t *tail) tee(next io.Writer) io.Writer { return tee{t, next} }

type tee struct {
	tail *tail
	next io.Writer
}

func (w tee) Write(p []byte) (int, error) {
	w.tail.record(p)
	w.tail.mu.Lock()
	admitted := w.tail.printed.admit(time.Now(), w.tail.secrets.redactBytes(p))
	w.tail.mu.Unlock()
	if len(admitted) == 0 {
		return len(p), nil
	}
	if _, err := w.next.Write(admitted); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (t *tail) record(line []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.heard != nil {
		_, _ = t.heard.Write(line) // what is heard is nobody's condition for serving
	}
	t.last = append(t.last, line...)
	if bytes.HasPrefix(line, []byte("panic: ")) || bytes.HasPrefix(line, []byte("fatal error: ")) {
		t.cause = bytes.TrimSpace(bytes.Clone(line[:min(len(line), causeBytes)]))
	}
	if over := len(t.last) - tailBytes; over > 0 {
		t.last = append(t.last[:0], t.last[over:]...)
	}
}

// sanitized returns the line, marked as plain text when it looks like one of hclog's and is not:
// go-plugin takes the fields that begin with @ for strings without looking, and panics when one
// is not.
func sanitized(line []byte) []byte {
	var fields map[string]any
	if !bytes.HasPrefix(bytes.TrimSpace(line), []byte("{")) || json.Unmarshal(line, &fields) != nil {
		return line
	}
	for _, name := range []string{"@message", "@level", "@timestamp"} {
		if value, there := fields[name]; there {
			if _, text := value.(string); !text {
				return append([]byte("[WARN] "), line...)
			}
		}
	}
	return line
}

// Close stops passing on.
func (t *tail) Close() error { return t.from.Close() }

// wait returns when everything has passed, or soon.
func (t *tail) wait() {
	soon := time.NewTimer(tailWait)
	defer soon.Stop()
	select {
	case <-t.ended:
	case <-soon.C:
	}
}

// String is the last lines on one, without go-plugin's own chatter.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines []string
	for line := range bytes.Lines(t.last) {
		if line = bytes.TrimSpace(line); len(line) > 0 && !bytes.Contains(line, []byte(`"@module":"go-plugin`)) {
			lines = append(lines, string(line))
		}
	}
	if len(lines) > tailLines {
		lines = lines[len(lines)-tailLines:]
	}
	if cause := string(t.cause); cause != "" && !slices.Contains(lines, cause) {
		lines = append([]string{cause}, lines...)
	}
	return t.secrets.redact(strings.Join(lines, " / "))
}
