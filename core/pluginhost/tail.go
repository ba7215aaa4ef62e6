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
	lineBytes  = 64 << 10        // the longest line that is read as one, here and by go-plugin
	tailBytes  = 8 << 10         // how much of a plugin's last output goes into an error
	tailLines  = 20              // how many lines of it
	causeBytes = 500             // the longest cause of a crash
	tailWait   = 5 * time.Second // how long an error waits for the last output, which cannot be added to the error later
)

// tail passes a plugin's standard error to the log. It keeps the end of the output, and sanitizes lines that
// would crash the reader.
type tail struct {
	from  *os.File
	lines *bufio.Reader
	ready []byte // part of the current line, not yet passed on
	once  sync.Once
	ended chan struct{} // closed when everything has been passed on

	secrets secrets  // replaced in every line
	rate    lineRate // limits the lines from standard error
	printed lineRate // limits other output; guarded by mu

	copyTo io.Writer // receives everything as written; may be nil

	mu    sync.Mutex
	last  []byte
	cause []byte // the line in which a Go program reports its own crash; a stack trace follows
}

// Read passes on the plugin's output.
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

// tee returns a writer for output that does not come through standard error: once it serves, a Go plugin prints
// through its connection. The output is recorded, and written to next without secrets.
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
	if t.copyTo != nil {
		_, _ = t.copyTo.Write(line) // a failing listener must not affect the plugin
	}
	t.last = append(t.last, line...)
	if bytes.HasPrefix(line, []byte("panic: ")) || bytes.HasPrefix(line, []byte("fatal error: ")) {
		t.cause = bytes.TrimSpace(bytes.Clone(line[:min(len(line), causeBytes)]))
	}
	if over := len(t.last) - tailBytes; over > 0 {
		t.last = append(t.last[:0], t.last[over:]...)
	}
}

// sanitized returns the line, marked as plain text if it looks like one of hclog's but is not: go-plugin
// assumes that fields beginning with @ are strings, and panics if one is not.
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

// Close stops passing on output.
func (t *tail) Close() error { return t.from.Close() }

// wait returns when everything has been passed on, or after tailWait.
func (t *tail) wait() {
	soon := time.NewTimer(tailWait)
	defer soon.Stop()
	select {
	case <-t.ended:
	case <-soon.C:
	}
}

// String returns the last lines joined into one, without go-plugin's own messages.
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
