package apps

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// What is kept of an app's stderr in memory: a line in the making, and the last lines, which
// explain a failed start better than any exit code.
const (
	lineLimit = 16 << 10 // bytes; a longer line is written in pieces
	tailLines = 10
	tailBytes = 2 << 10
)

// stderr takes an app's stderr line by line: secrets are taken out, the log gets the line, and
// the last lines are kept. What cannot be logged is dropped, never held: an app must not block on
// its stderr, and a flood of it fills neither memory nor disk.
type stderr struct {
	redact redactor
	log    io.WriteCloser

	mu   sync.Mutex
	line []byte
	tail []string
}

func newStderr(log io.WriteCloser, r redactor) *stderr { return &stderr{redact: r, log: log} }

// Write never fails.
func (s *stderr) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(p)
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		take, whole := len(p), false
		if end >= 0 {
			take, whole = end, true
		}
		if room := lineLimit - len(s.line); take > room {
			take, whole = room, false
		}
		s.line = append(s.line, p[:take]...)
		p = p[take:]
		if whole {
			p = p[1:]
		}
		if whole || len(s.line) >= lineLimit {
			s.flush()
		}
	}
	return n, nil
}

func (s *stderr) flush() {
	text := s.redact.text(string(bytes.TrimRight(s.line, "\r")))
	s.line = s.line[:0]
	_, _ = s.log.Write([]byte(text + "\n")) // a full disk must not stop the app
	if strings.TrimSpace(text) == "" {
		return
	}
	if len(text) > tailBytes {
		text = text[:tailBytes]
	}
	s.tail = append(s.tail, text)
	if len(s.tail) > tailLines {
		s.tail = append(s.tail[:0], s.tail[1:]...)
	}
}

// last is the last lines, tailBytes at most, "" when there are none.
func (s *stderr) last() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.line) > 0 {
		s.flush()
	}
	text := strings.Join(s.tail, "\n")
	if len(text) > tailBytes {
		text = text[len(text)-tailBytes:]
	}
	return strings.ToValidUTF8(text, "")
}

// Close writes the line in the making and closes the log.
func (s *stderr) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.line) > 0 {
		s.flush()
	}
	return s.log.Close()
}
