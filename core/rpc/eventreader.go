package rpc

import (
	"bytes"
	"io"
)

// Event is one server-sent event (WHATWG HTML, 9.2).
type Event struct {
	Name  string // "" means message
	ID    string
	HasID bool
	Retry string
	Data  []byte
	Over  bool   // the data exceeded the limit, and Data is the start of it
	Tail  []byte // the end of the data, if it exceeded the limit
}

// IsMessage reports whether the event carries a JSON-RPC message.
func (e *Event) IsMessage() bool { return e.Name == "" || e.Name == "message" }

// EventReader reads server-sent events of bounded size.
type EventReader struct {
	in    *LineReader
	limit int
	first bool
}

// NewEventReader returns a reader for events with at most limit bytes of data.
func NewEventReader(in io.Reader, limit int) *EventReader {
	return &EventReader{in: NewLineReader(&lineEnds{in: in}, limit+len("data: ")), limit: limit, first: true}
}

// lineEnds normalizes the line endings of an event stream: CR LF, LF and CR all end a line. JSON strings never
// contain these characters unescaped.
type lineEnds struct {
	in      io.Reader
	afterCR bool // the last byte was a CR, so an LF that follows does not end another line
}

// Read implements io.Reader.
func (l *lineEnds) Read(p []byte) (int, error) {
	for {
		n, err := l.in.Read(p)
		if !l.afterCR && bytes.IndexByte(p[:n], '\r') < 0 {
			return n, err
		}
		kept := 0
		for _, c := range p[:n] {
			if c == '\n' && l.afterCR {
				l.afterCR = false
				continue
			}
			if l.afterCR = c == '\r'; l.afterCR {
				c = '\n'
			}
			p[kept] = c
			kept++
		}
		if kept > 0 || err != nil || n == 0 {
			return kept, err
		}
	}
}

// Next returns the next event. It also returns a last event that is cut off by the end of the stream, because a
// server that closes right after its response may omit the empty line.
func (s *EventReader) Next() (Event, error) {
	var e Event
	found := false
	for {
		l, err := s.in.Next()
		if err != nil {
			if found {
				return e, nil
			}
			return e, err
		}
		if s.first {
			s.first = false
			l.Data = bytes.TrimPrefix(l.Data, []byte("\uFEFF"))
		}
		if len(l.Data) == 0 {
			if found {
				return e, nil
			}
			continue
		}
		found = s.field(&e, l) || found
	}
}

// field adds one line to the event and reports whether it was a known field.
func (s *EventReader) field(e *Event, l Line) bool {
	name, value, _ := bytes.Cut(l.Data, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	switch string(name) {
	case "event":
		e.Name = string(value)
	case "id":
		e.ID, e.HasID = string(value), true
	case "retry":
		e.Retry = string(value)
	case "data":
		s.addData(e, l, value)
	default: // a comment, or an unknown field
		return false
	}
	return true
}

func (s *EventReader) addData(e *Event, l Line, value []byte) {
	if e.Over || l.Over > 0 || len(e.Data)+len(value) >= s.limit+1 {
		e.Over, e.Tail = true, bytes.Clone(l.Tail)
		if e.Data == nil {
			e.Data = bytes.Clone(value[:min(len(value), KeptEnd)])
		}
		return
	}
	if e.Data != nil {
		e.Data = append(e.Data, '\n')
	}
	e.Data = append(e.Data, value...)
}
