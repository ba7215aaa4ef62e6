package model

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// EventStream reads the data of the events of a text/event-stream body (WHATWG HTML, server-sent events).
// Names, ids and comments are skipped.
type EventStream struct{ r *bufio.Reader }

// NewEventStream returns the stream that a body is.
func NewEventStream(body io.Reader) *EventStream { return &EventStream{bufio.NewReader(body)} }

// Next returns the data of the next event, io.EOF after the last one. An event that the end of the body
// cuts off is returned, too: some providers leave out the last empty line.
func (s *EventStream) Next() ([]byte, error) {
	var data []byte
	seen := false
	for {
		line, err := s.r.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		line = bytes.TrimRight(line, "\r\n")
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
