package model

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// EventStream reads the data of the events of a text/event-stream body (WHATWG HTML, server-sent events): a
// line ends with CR, LF or both, and a byte order mark may come first. Names, ids and comments are skipped.
type EventStream struct {
	r     *bufio.Reader
	begun bool
	cr    bool // the last line ended with CR: a LF that follows belongs to it
}

// NewEventStream returns the stream that a body is.
func NewEventStream(body io.Reader) *EventStream { return &EventStream{r: bufio.NewReader(body)} }

// Next returns the data of the next event, io.EOF after the last one. An event that the end of the body
// cuts off is returned, too: some providers leave out the last empty line.
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
		if seen && (len(line) == 0 || err != nil) {
			return data, nil //nolint:nilerr // the end of the body comes after the event that it cuts off
		}
		if err != nil {
			return nil, err
		}
	}
}

// line returns the next line without its end. It does not wait for the LF that may follow a CR.
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

// withoutMark removes the byte order mark of the first line.
func (s *EventStream) withoutMark(line []byte) []byte {
	if !s.begun {
		s.begun = true
		return bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	return line
}
