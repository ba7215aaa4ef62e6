package rawjson

import "errors"

// ErrDuplicate means that an object has a member twice, so that two readers could use different ones.
var ErrDuplicate = errors.New("a name is given twice")

// Span is the position of a part of a JSON text. The zero Span is empty.
type Span struct{ From, To int }

// Empty reports whether nothing was found.
func (at Span) Empty() bool { return at.To == 0 }

// In returns that part of text, or nil for an empty Span.
func (at Span) In(text []byte) []byte {
	if at.Empty() {
		return nil
	}
	return text[at.From:at.To]
}

// After converts a span within the part of a text that begins at from to a span within the whole text.
func (at Span) After(from int) Span {
	if at.Empty() {
		return at
	}
	return Span{at.From + from, at.To + from}
}

// Find validates an object completely and returns the position of the named member's value, or an empty Span if
// there is no such member. The error is ErrDuplicate if there are two.
func Find(object []byte, name string) (Span, error) {
	var found Span
	s := Scanner{Data: object}
	s.Space()
	err := s.Object(func(key, value []byte) error {
		if string(Name(key)) != name {
			return nil
		}
		if !found.Empty() {
			return ErrDuplicate
		}
		found = Span{s.pos - len(value), s.pos}
		return nil
	})
	if err == nil && !s.End() {
		err = ErrSyntax
	}
	if err != nil {
		return Span{}, err
	}
	return found, nil
}

// Replace returns a copy of text with the part at replaced by value.
func Replace(text []byte, at Span, value []byte) []byte {
	out := make([]byte, 0, len(text)-(at.To-at.From)+len(value))
	return append(append(append(out, text[:at.From]...), value...), text[at.To:]...)
}
