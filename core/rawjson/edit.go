package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
)

// Member is one member of an object. Its name must not contain characters that JSON would escape.
type Member struct {
	Name  string
	Value json.RawMessage
}

// Set returns a copy of an object with members set: in place if the object has them, or else at its end, in the order
// given. All other bytes are kept. It accepts up to 64 members.
func Set(object []byte, members ...Member) (json.RawMessage, error) {
	size := len(object)
	for _, m := range members {
		size += len(m.Name) + len(m.Value) + 4
	}
	out := make([]byte, 0, size)
	var set uint64 // one bit per member
	copied, count := 0, 0
	s := Scanner{Data: object}
	s.Space()
	err := s.Object(func(key, value []byte) error {
		count++
		i := index(members, Name(key))
		if i < 0 {
			return nil
		}
		if set>>i&1 == 1 {
			return ErrDuplicate
		}
		set |= 1 << i
		out = append(append(out, object[copied:s.pos-len(value)]...), members[i].Value...)
		copied = s.pos
		return nil
	})
	end := s.pos - 1
	if err == nil && !s.End() {
		err = ErrSyntax
	}
	if err != nil {
		return nil, err
	}
	out = append(out, object[copied:end]...)
	for i, m := range members {
		if set>>i&1 == 1 {
			continue
		}
		if count > 0 {
			out = append(out, ',')
		}
		out = append(append(append(append(out, '"'), m.Name...), `":`...), m.Value...)
		count++
	}
	return append(out, object[end:]...), nil
}

func index(members []Member, name []byte) int {
	for i, m := range members {
		if m.Name == string(name) {
			return i
		}
	}
	return -1
}

// Without returns a copy of an object without the named members.
func Without(object []byte, names ...string) (json.RawMessage, error) {
	out := make([]byte, 1, len(object))
	out[0] = '{'
	s := Scanner{Data: object}
	s.Space()
	err := s.Object(func(key, value []byte) error {
		name := Name(key)
		for _, n := range names {
			if n == string(name) {
				return nil
			}
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(append(out, '"'), key...), `":`...), value...)
		return nil
	})
	return append(out, '}'), err
}

// Edit returns a copy of an object in which members have the values that edit returns for them; nil leaves a
// member as it is. If nothing changes, it returns the object itself.
func Edit(object []byte, edit func(name string, value json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error) {
	var out []byte
	copied := 0
	s := Scanner{Data: object}
	s.Space()
	err := s.Object(func(key, value []byte) error {
		other, err := edit(string(Name(key)), value)
		if err != nil || other == nil {
			return err
		}
		out = append(append(out, object[copied:s.pos-len(value)]...), other...)
		copied = s.pos
		return nil
	})
	if err == nil && !s.End() {
		err = ErrSyntax
	}
	if err != nil {
		return nil, err
	}
	if copied == 0 {
		return object, nil
	}
	return append(out, object[copied:]...), nil
}

// EditMember applies edit to the value of the named member of an object, if it has one.
func EditMember(object []byte, name string, edit func(json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error) {
	return Edit(object, func(member string, value json.RawMessage) (json.RawMessage, error) {
		if member != name {
			return nil, nil
		}
		return edit(value)
	})
}

// Rename returns a copy of an object with the named member, which must exist, set to the string value.
func Rename(object []byte, name, value string) (json.RawMessage, error) {
	found := false
	out, err := EditMember(object, name, func(json.RawMessage) (json.RawMessage, error) {
		found = true
		return Quote(value), nil
	})
	if err == nil && !found {
		err = errors.New("it has no " + name)
	}
	return out, err
}

// EditElements returns a copy of an array with the elements that edit returns for the original ones.
func EditElements(array []byte, edit func(json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error) {
	out := make([]byte, 1, len(array))
	out[0] = '['
	s := Scanner{Data: array}
	s.Space()
	err := s.Array(func(element []byte) error {
		other, err := edit(element)
		if err != nil {
			return err
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, other...)
		return nil
	})
	if err == nil && !s.End() {
		err = ErrSyntax
	}
	if err != nil {
		return nil, err
	}
	return append(out, ']'), nil
}

// Array joins elements into an array.
func Array(elements []json.RawMessage) json.RawMessage {
	size := 2
	for _, e := range elements {
		size += len(e) + 1
	}
	out := append(make([]byte, 0, size), '[')
	for i, e := range elements {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, e...)
	}
	return append(out, ']')
}

// Quote returns text as a JSON string, without HTML escapes.
func Quote(text string) json.RawMessage {
	raw, _ := Encode(text) // encoding a string cannot fail
	return raw
}

// Encode returns a value as JSON. It does not escape HTML, because programs read the result.
func Encode(value any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(value)
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), err
}

// Decode returns the value of a JSON text. Numbers keep their digits.
func Decode(raw []byte) (value any, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	err = dec.Decode(&value)
	return value, err
}
