package rawjson

import "errors"

// MaxDepth limits the nesting of every JSON text that the server reads. The standard library allows 10,000
// levels.
const MaxDepth = 100

// Reasons why a JSON text is rejected.
var (
	ErrSyntax = errors.New("not valid JSON")
	ErrDepth  = errors.New("nested more than 100 levels deep") // MaxDepth
)

// Scanner validates JSON (RFC 8259) in one pass over the bytes without allocating. It accepts what
// encoding/json accepts, except nesting deeper than MaxDepth.
type Scanner struct {
	Data  []byte
	pos   int
	outer int // levels that Object and Array have entered
}

// Space skips white space.
func (s *Scanner) Space() {
	for s.pos < len(s.Data) {
		switch s.Data[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

// peek returns the next byte, or 0 at the end.
func (s *Scanner) peek() byte {
	if s.pos < len(s.Data) {
		return s.Data[s.pos]
	}
	return 0
}

// take consumes c if it comes next.
func (s *Scanner) take(c byte) bool {
	if s.pos < len(s.Data) && s.Data[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

// End reports whether only white space is left.
func (s *Scanner) End() bool {
	s.Space()
	return s.pos == len(s.Data)
}

// Object walks the members of the object at the current position. member gets each raw key (between its quotes;
// see Name) and the span of its value. Values are validated before member sees them.
func (s *Scanner) Object(member func(key, value []byte) error) error {
	return s.Fields(func(key []byte) error {
		value, err := s.Take()
		if err != nil {
			return err
		}
		return member(key, value)
	})
}

// Fields walks the object at the current position like Object, but field consumes the values, with Take, Value,
// Fields or Items: nested values are seen in the same pass.
func (s *Scanner) Fields(field func(key []byte) error) error {
	s.outer++
	err := s.fields(field)
	s.outer--
	return err
}

func (s *Scanner) fields(field func(key []byte) error) error {
	if !s.take('{') {
		return ErrSyntax
	}
	if s.Space(); s.take('}') {
		return nil
	}
	for {
		key, err := s.key()
		if err != nil {
			return err
		}
		if err := field(key); err != nil {
			return err
		}
		s.Space()
		if s.take('}') {
			return nil
		}
		if !s.take(',') {
			return ErrSyntax
		}
		s.Space()
	}
}

// key consumes a member's name and colon, and the space around it.
func (s *Scanner) key() ([]byte, error) {
	start := s.pos + 1
	if err := s.str(); err != nil {
		return nil, err
	}
	key := s.Data[start : s.pos-1]
	if s.Space(); !s.take(':') {
		return nil, ErrSyntax
	}
	s.Space()
	return key, nil
}

// Array walks the elements of the array at the current position.
func (s *Scanner) Array(element func(value []byte) error) error {
	return s.Items(func() error {
		value, err := s.Take()
		if err != nil {
			return err
		}
		return element(value)
	})
}

// Items walks the array at the current position like Array, but item consumes the elements.
func (s *Scanner) Items(item func() error) error {
	s.outer++
	err := s.items(item)
	s.outer--
	return err
}

func (s *Scanner) items(item func() error) error {
	if !s.take('[') {
		return ErrSyntax
	}
	if s.Space(); s.take(']') {
		return nil
	}
	for {
		if err := item(); err != nil {
			return err
		}
		s.Space()
		if s.take(']') {
			return nil
		}
		if !s.take(',') {
			return ErrSyntax
		}
		s.Space()
	}
}

// Take consumes one value and returns it, with no spare capacity.
func (s *Scanner) Take() ([]byte, error) {
	start := s.pos
	if err := s.Value(); err != nil {
		return nil, err
	}
	return s.Data[start:s.pos:s.pos], nil
}

// Since returns the text consumed since before, an earlier copy of the scanner.
func (s *Scanner) Since(before *Scanner) []byte { return s.Data[before.pos:s.pos:s.pos] }

// Begins reports whether the next value begins with c.
func (s *Scanner) Begins(c byte) bool { return s.peek() == c }

// Valid reports whether data is one JSON value surrounded only by white space.
func Valid(data []byte) bool {
	s := Scanner{Data: data}
	s.Space()
	return s.Value() == nil && s.End()
}
