package link

import (
	"bytes"
	"fmt"
	"io"
)

// event is one server-sent event (WHATWG HTML, 9.2).
type event struct {
	name  string // "" means message
	id    string
	hasID bool
	retry string
	data  []byte
	over  bool   // the data was over the limit; data is its beginning
	tail  []byte // for one over the limit, its end
}

func (e *event) message() bool { return e.name == "" || e.name == "message" }

// events reads server-sent events of bounded size.
type events struct {
	in    *framer
	limit int
	first bool
}

func newEvents(in io.Reader, limit int) *events {
	return &events{in: newFramer(in, limit+len("data: ")), limit: limit, first: true}
}

// next returns the next event. The last one counts even when the stream ends within it, as a
// server that closes right after its answer may leave out the empty line.
func (s *events) next() (event, error) {
	var e event
	some := false
	for {
		l, err := s.in.next()
		if err != nil {
			if some {
				return e, nil
			}
			return e, err
		}
		if s.first {
			s.first = false
			l.data = bytes.TrimPrefix(l.data, []byte("\uFEFF"))
		}
		if len(l.data) == 0 {
			if some {
				return e, nil
			}
			continue
		}
		some = s.field(&e, l) || some
	}
}

// field adds one line to the event and reports whether it was a field that counts.
func (s *events) field(e *event, l line) bool {
	name, value, _ := bytes.Cut(l.data, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	switch string(name) {
	case "event":
		e.name = string(value)
	case "id":
		e.id, e.hasID = string(value), true
	case "retry":
		e.retry = string(value)
	case "data":
		s.data(e, l, value)
	default: // a comment, or an unknown field
		return false
	}
	return true
}

func (s *events) data(e *event, l line, value []byte) {
	if e.over || l.over > 0 || len(e.data)+len(value) >= s.limit+1 {
		e.over, e.tail = true, bytes.Clone(l.tail)
		if e.data == nil {
			e.data = bytes.Clone(value[:min(len(value), keepEnd)])
		}
		return
	}
	if e.data != nil {
		e.data = append(e.data, '\n')
	}
	e.data = append(e.data, value...)
}

// filter is a stream of server-sent events in which every message is sound: the SDK ends a session
// at the first event that is not. What is not sound becomes an error to the call it answers.
type filter struct {
	in     *events
	source io.Closer
	junk   *tally
	limit  int
	id     func() string // the id of the call that the stream answers, "null" for none
	out    bytes.Buffer
}

// Read implements io.Reader.
func (f *filter) Read(p []byte) (int, error) {
	for f.out.Len() == 0 {
		e, err := f.in.next()
		if err != nil {
			return 0, err
		}
		f.write(e)
	}
	return f.out.Read(p)
}

// Close implements io.Closer.
func (f *filter) Close() error { return f.source.Close() }

func (f *filter) write(e event) {
	if f.out.Cap() > keepBuffer {
		f.out = bytes.Buffer{}
	}
	f.out.Reset()
	if e.message() && len(e.data) > 0 {
		e.data = f.check(e)
	}
	if e.name != "" {
		fmt.Fprintf(&f.out, "event: %s\n", e.name)
	}
	if e.hasID {
		fmt.Fprintf(&f.out, "id: %s\n", e.id)
	}
	if e.retry != "" {
		fmt.Fprintf(&f.out, "retry: %s\n", e.retry)
	}
	if len(e.data) > 0 {
		for part := range bytes.SplitSeq(e.data, []byte{'\n'}) {
			f.out.WriteString("data: ")
			f.out.Write(part)
			f.out.WriteByte('\n')
		}
	}
	f.out.WriteByte('\n')
}

// check returns sound data for a message; nothing when it is not and answers no call.
func (f *filter) check(e event) []byte {
	id := f.id()
	data := e.data
	if e.over {
		if n, ok := salvage(e.data, e.tail); ok {
			id = fmt.Sprint(n)
		}
		data = make([]byte, f.limit+1)
	} else if _, err := scanEnvelope(data); err == nil {
		return repaired(data)
	}
	if id == "null" {
		f.junk.add("an event that is no message")
		return nil
	}
	return sound(data, f.limit, f.junk, func() string { return id })
}
