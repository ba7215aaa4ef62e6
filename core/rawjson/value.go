package rawjson

import "bytes"

// Value consumes one value of any kind, without recursion. inObject holds one bit per level.
func (s *Scanner) Value() error {
	var inObject [MaxDepth/64 + 1]uint64
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

// open consumes a scalar, an empty container, or the start of a container up to its first value; opened reports
// whether a value must follow.
func (s *Scanner) open(inObject *[MaxDepth/64 + 1]uint64, depth *int) (opened bool, err error) {
	object := s.peek() == '{'
	if !object && s.peek() != '[' {
		return false, s.scalar()
	}
	if s.outer+*depth == MaxDepth {
		return false, ErrDepth
	}
	s.pos++
	s.Space()
	if object && s.take('}') || !object && s.take(']') {
		return false, nil
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

// closeLevels consumes the text after a value: the ends of containers, or the separator before the next value. more
// reports whether a value must follow.
func (s *Scanner) closeLevels(inObject *[MaxDepth/64 + 1]uint64, depth *int) (more bool, err error) {
	for *depth > 0 {
		s.Space()
		object := inObject[(*depth-1)/64]>>((*depth-1)%64)&1 == 1
		switch {
		case object && s.take('}'), !object && s.take(']'):
			*depth--
		case s.take(','):
			s.Space()
			if object {
				_, err = s.key()
			}
			return true, err
		default:
			return false, ErrSyntax
		}
	}
	return false, nil
}

func (s *Scanner) scalar() error {
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
	return ErrSyntax
}

func (s *Scanner) literal(word string) error {
	if !bytes.HasPrefix(s.Data[s.pos:], []byte(word)) {
		return ErrSyntax
	}
	s.pos += len(word)
	return nil
}

func (s *Scanner) number() error {
	s.take('-')
	if !s.take('0') && !s.digits() {
		return ErrSyntax
	}
	if s.take('.') && !s.digits() {
		return ErrSyntax
	}
	if s.take('e') || s.take('E') {
		if !s.take('+') {
			s.take('-')
		}
		if !s.digits() {
			return ErrSyntax
		}
	}
	return nil
}

func (s *Scanner) digits() bool {
	start := s.pos
	for s.pos < len(s.Data) && '0' <= s.Data[s.pos] && s.Data[s.pos] <= '9' {
		s.pos++
	}
	return s.pos > start
}
