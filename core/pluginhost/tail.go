package pluginhost

import (
	"bytes"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	tailBytes = 1 << 10                // how much of what a plugin wrote last goes into an error
	tailWait  = 200 * time.Millisecond // how long an error waits for the last of it to be read
)

// tail is a plugin's standard error on its way to the log. It keeps the end of what passed.
type tail struct {
	from  *os.File
	once  sync.Once
	ended chan struct{} // closed when everything has passed

	mu   sync.Mutex
	last []byte
}

// Read passes on what the plugin wrote.
func (t *tail) Read(p []byte) (int, error) {
	n, err := t.from.Read(p)
	t.mu.Lock()
	t.last = append(t.last, p[:n]...)
	if over := len(t.last) - tailBytes; over > 0 {
		t.last = append(t.last[:0], t.last[over:]...)
	}
	t.mu.Unlock()
	if err != nil {
		t.once.Do(func() { close(t.ended) })
	}
	return n, err
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
	return strings.Join(lines, " / ")
}
