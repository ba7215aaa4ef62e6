package rawjson

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/bits"
)

// str consumes a string with its quotes.
func (s *Scanner) str() error {
	if !s.take('"') {
		return ErrSyntax
	}
	for {
		s.pos += plain(s.Data[s.pos:])
		if s.pos >= len(s.Data) {
			return ErrSyntax
		}
		c := s.Data[s.pos]
		s.pos++
		switch {
		case c == '"':
			return nil
		case c != '\\' || !s.escape():
			return ErrSyntax
		}
	}
}

// escape consumes the rest of an escape sequence, after its backslash.
func (s *Scanner) escape() bool {
	switch s.peek() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.pos++
		return true
	case 'u':
		s.pos++
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

// plain returns how many bytes at the start of data need no attention inside a string: no quotes, backslashes
// or control characters. It examines eight bytes at a time.
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

// Name returns the text that a raw key represents. Most keys have no escapes and are returned unchanged.
func Name(key []byte) []byte {
	if bytes.IndexByte(key, '\\') < 0 {
		return key
	}
	return []byte(Text(append(append([]byte{'"'}, key...), '"')))
}

// Text returns the value of a validated JSON string, or "" for any other value or none.
func Text(quoted []byte) string {
	if len(quoted) == 0 || quoted[0] != '"' {
		return ""
	}
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
