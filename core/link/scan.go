package link

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math/bits"
)

// maxDepth bounds the nesting of a message. The standard library allows 10,000.
const maxDepth = 1000

var (
	errSyntax = errors.New("not valid JSON")
	errDepth  = errors.New("nested too deeply")
)

// scanner checks JSON (RFC 8259) in one pass over the bytes and allocates nothing. It accepts what
// encoding/json accepts, but for nesting deeper than maxDepth.
type scanner struct {
	data []byte
	pos  int
}

func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

// peek is the next byte, 0 at the end.
func (s *scanner) peek() byte {
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

// take consumes c if it comes next.
func (s *scanner) take(c byte) bool {
	if s.pos < len(s.data) && s.data[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

// end reports whether only white space is left.
func (s *scanner) end() bool {
	s.space()
	return s.pos == len(s.data)
}

// object walks the members of the object that begins here. member gets each raw key (between its
// quotes) and the span of its value. Values are checked before member sees them.
func (s *scanner) object(member func(key, value []byte) error) error {
	if !s.take('{') {
		return errSyntax
	}
	if s.space(); s.take('}') {
		return nil
	}
	for {
		key, err := s.key()
		if err != nil {
			return err
		}
		start := s.pos
		if err := s.value(); err != nil {
			return err
		}
		if err := member(key, s.data[start:s.pos]); err != nil {
			return err
		}
		s.space()
		if s.take('}') {
			return nil
		}
		if !s.take(',') {
			return errSyntax
		}
		s.space()
	}
}

// key consumes a member's name and colon, and the space around it.
func (s *scanner) key() ([]byte, error) {
	start := s.pos + 1
	if err := s.str(); err != nil {
		return nil, err
	}
	key := s.data[start : s.pos-1]
	if s.space(); !s.take(':') {
		return nil, errSyntax
	}
	s.space()
	return key, nil
}

// array walks the elements of the array that begins here.
func (s *scanner) array(element func(value []byte) error) error {
	if !s.take('[') {
		return errSyntax
	}
	if s.space(); s.take(']') {
		return nil
	}
	for {
		start := s.pos
		if err := s.value(); err != nil {
			return err
		}
		if err := element(s.data[start:s.pos]); err != nil {
			return err
		}
		s.space()
		if s.take(']') {
			return nil
		}
		if !s.take(',') {
			return errSyntax
		}
		s.space()
	}
}

// value consumes one value of any kind, without recursion. inObject holds one bit for each level.
func (s *scanner) value() error {
	var inObject [maxDepth/64 + 1]uint64
	for depth := 0; ; {
		opened, err := s.open(&inObject, &depth)
		if err != nil {
			return err
		}
		if opened {
			continue
		}
		more, err := s.closeLevels(&inObject, &depth)
		if err != nil || !more {
			return err
		}
	}
}

// open consumes a scalar, an empty container, or the beginning of a container up to its first
// value; opened tells that a value must follow.
func (s *scanner) open(inObject *[maxDepth/64 + 1]uint64, depth *int) (opened bool, err error) {
	object := s.peek() == '{'
	if !object && s.peek() != '[' {
		return false, s.scalar()
	}
	s.pos++
	s.space()
	if object && s.take('}') || !object && s.take(']') {
		return false, nil
	}
	if *depth == maxDepth {
		return false, errDepth
	}
	word, bit := *depth/64, uint64(1)<<(*depth%64)
	*depth++
	if !object {
		inObject[word] &^= bit
		return true, nil
	}
	inObject[word] |= bit
	_, err = s.key()
	return true, err
}

// closeLevels consumes what follows a value: the ends of containers, or the separator before the
// next value; more tells that a value must follow.
func (s *scanner) closeLevels(inObject *[maxDepth/64 + 1]uint64, depth *int) (more bool, err error) {
	for *depth > 0 {
		s.space()
		object := inObject[(*depth-1)/64]>>((*depth-1)%64)&1 == 1
		switch {
		case object && s.take('}'), !object && s.take(']'):
			*depth--
		case s.take(','):
			s.space()
			if object {
				_, err = s.key()
			}
			return true, err
		default:
			return false, errSyntax
		}
	}
	return false, nil
}

func (s *scanner) scalar() error {
	switch c := s.peek(); {
	case c == '"':
		return s.str()
	case c == '-' || '0' <= c && c <= '9':
		return s.number()
	case c == 't':
		return s.literal("true")
	case c == 'f':
		return s.literal("false")
	case c == 'n':
		return s.literal("null")
	}
	return errSyntax
}

func (s *scanner) literal(word string) error {
	if !bytes.HasPrefix(s.data[s.pos:], []byte(word)) {
		return errSyntax
	}
	s.pos += len(word)
	return nil
}

func (s *scanner) number() error {
	s.take('-')
	if !s.take('0') && !s.digits() {
		return errSyntax
	}
	if s.take('.') && !s.digits() {
		return errSyntax
	}
	if s.take('e') || s.take('E') {
		if !s.take('+') {
			s.take('-')
		}
		if !s.digits() {
			return errSyntax
		}
	}
	return nil
}

func (s *scanner) digits() bool {
	start := s.pos
	for s.pos < len(s.data) && '0' <= s.data[s.pos] && s.data[s.pos] <= '9' {
		s.pos++
	}
	return s.pos > start
}

// str consumes a string with its quotes.
func (s *scanner) str() error {
	if !s.take('"') {
		return errSyntax
	}
	for {
		s.pos += plain(s.data[s.pos:])
		if s.pos >= len(s.data) {
			return errSyntax
		}
		c := s.data[s.pos]
		s.pos++
		switch {
		case c == '"':
			return nil
		case c != '\\' || !s.escape():
			return errSyntax
		}
	}
}

// escape consumes what follows a backslash.
func (s *scanner) escape() bool {
	c := s.peek()
	s.pos++
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		for range 4 {
			if !hexDigit(s.peek()) {
				return false
			}
			s.pos++
		}
		return true
	}
	return false
}

func hexDigit(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// plain is how many bytes of data need no attention inside a string: neither a quote, nor a
// backslash, nor a control character. It looks at eight bytes at a time.
func plain(data []byte) int {
	n := 0
	for ; len(data)-n >= 8; n += 8 {
		x := binary.LittleEndian.Uint64(data[n:])
		quote, slash := x^(ones*'"'), x^(ones*'\\')
		special := ((x-ones*' ')&^x | (quote-ones)&^quote | (slash-ones)&^slash) & highs
		if special != 0 {
			return n + bits.TrailingZeros64(special)/8
		}
	}
	for ; n < len(data); n++ {
		if c := data[n]; c < ' ' || c == '"' || c == '\\' {
			break
		}
	}
	return n
}

// name is a raw key as the text that it stands for. Most keys hold no escape and are returned as
// they are.
func name(key []byte) []byte {
	if bytes.IndexByte(key, '\\') < 0 {
		return key
	}
	return []byte(text(append(append([]byte{'"'}, key...), '"')))
}

// text is the value of a JSON string that was checked before.
func text(quoted []byte) string {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		return ""
	}
	return s
}
