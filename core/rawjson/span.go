package rawjson

import "errors"

// ErrDuplicate means that an object has a member twice, so that two readers could take different ones.
var ErrDuplicate = errors.New("a name is given twice")

// Span is where a part of a text lies. The zero Span is empty.
type Span struct{ From, To int }

// Empty reports whether nothing was found.
func (at Span) Empty() bool { return at.To == 0 }

// In is the part of text, nil for an empty Span.
func (at Span) In(text []byte) []byte {
	if at.Empty() {
		return nil
	}
	return text[at.From:at.To]
}

// After is where a part lies in a text when at is where it lies in the part of the text that begins at
// from.
func (at Span) After(from int) Span {
	if at.Empty() {
		return at
	}
	return Span{at.From + from, at.To + from}
}

// Find checks all of an object and returns where the value of the named member lies in it, an empty Span
// when there is no such member. ErrDuplicate when there are two.
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

// Replace is a copy of text with the part at replaced by value.
func Replace(text []byte, at Span, value []byte) []byte {
	out := make([]byte, 0, len(text)-(at.To-at.From)+len(value))
	return append(append(append(out, text[:at.From]...), value...), text[at.To:]...)
}
