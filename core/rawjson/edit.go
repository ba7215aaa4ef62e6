package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
)

// Member is one member of an object. Its name holds nothing that JSON would escape.
type Member struct {
	Name  string
	Value json.RawMessage
}

// Set is a copy of an object with members set: in place where the object has them, else at its end, in
// the order given. Every other byte is kept. It takes up to 64 members.
func Set(object []byte, members ...Member) (json.RawMessage, error) {
	size := len(object)
	for _, m := range members {
		size += len(m.Name) + len(m.Value) + 4
	}
	out := make([]byte, 0, size)
	var set uint64 // a bit for each of members
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

// Without is a copy of an object without the named members.
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

// Edit is a copy of an object in which members have the values that edit returns for them; nil leaves
// one as it is. An object in which nothing is changed is returned itself.
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

// Rename is a copy of an object whose named member, which must be there, is the string value.
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

// EditElements is an array with the elements that edit returns for its own.
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

// Array joins elements to an array.
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

// Quote is text as a JSON string. HTML is not escaped: what is edited is read by programs.
func Quote(text string) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a string always encodes
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}
