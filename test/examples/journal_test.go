package examples

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"
)

// journal is a log that can be read while it is written.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}

// mustHold waits for a line that holds all of the parts: a plugin's log comes over a pipe.
func (j *journal) mustHold(t *testing.T, parts ...string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 500 {
		for line := range strings.Lines(j.String()) {
			if holds(line, parts) {
				return
			}
		}
		<-tick.C
	}
	t.Errorf("no line holds all of %q:\n%s", parts, j)
}

func holds(line string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(line, part) {
			return false
		}
	}
	return true
}
