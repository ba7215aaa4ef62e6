package model

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"unicode"
)

// EventStream reads the data of the events in a text/event-stream body (WHATWG HTML, server-sent events). Lines end
// with CR, LF or CRLF, and the body may start with a byte order mark. Names, ids, comments and events without data are
// skipped.
type EventStream struct {
	r     *bufio.Reader
	begun bool
	cr    bool // the last line ended with CR, so an LF that follows is part of its line ending
}

// NewEventStream returns a stream that reads from body.
func NewEventStream(body io.Reader) *EventStream { return &EventStream{r: bufio.NewReader(body)} }

// Object returns the whole body if it is JSON instead of a stream, because some servers return JSON although a stream was
// requested. It returns nil for a stream.
func (s *EventStream) Object() ([]byte, error) {
	first, err := peekText(s.r)
	if err == nil && (first == '{' || first == '[') {
		return io.ReadAll(s.r)
	}
	return nil, nil // Next returns the error again
}

// peekText skips white space and returns the next byte without reading it.
func peekText(r *bufio.Reader) (byte, error) {
	for {
		next, err := r.Peek(1)
		if err != nil {
			return 0, err
		}
		if !unicode.IsSpace(rune(next[0])) {
			return next[0], nil
		}
		_, _ = r.Discard(1)
	}
}

// Next returns the data of the next event, or io.EOF after the last one. It also returns an event that is cut off by
// the end of the body, because some providers omit the last empty line.
func (s *EventStream) Next() ([]byte, error) {
	var data []byte
	seen := false
	for {
		line, err := s.line()
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if value, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if seen {
				data = append(data, '\n')
			}
			data, seen = append(data, bytes.TrimPrefix(value, []byte(" "))...), true
		}
		if len(line) == 0 || err != nil {
			if len(bytes.TrimSpace(data)) > 0 {
				return data, nil // the next call returns the end of the body
			}
			data, seen = nil, false // some gateways send empty events while they wait
		}
		if err != nil {
			return nil, err
		}
	}
}

// line returns the next line without its line ending. It does not wait for the LF that may follow a CR.
func (s *EventStream) line() ([]byte, error) {
	var line []byte
	for {
		c, err := s.r.ReadByte()
		if err != nil {
			return s.withoutMark(line), err
		}
		after := s.cr
		s.cr = c == '\r'
		switch {
		case c == '\n' && after:
		case c == '\n', c == '\r':
			return s.withoutMark(line), nil
		default:
			line = append(line, c)
		}
	}
}

// withoutMark removes the byte order mark from the first line.
func (s *EventStream) withoutMark(line []byte) []byte {
	if !s.begun {
		s.begun = true
		return bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	return line
}
