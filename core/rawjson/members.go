package rawjson

import (
	"encoding/json"
	"iter"
	"slices"
	"strings"
)

// Members checks all of an object and gives its members to each, in order. It returns false for anything
// but one object, for a name that differs from a known one only in case, and when each does.
func Members(object []byte, known []string, each func(name string, value json.RawMessage) bool) bool {
	s := Scanner{Data: object}
	s.Space()
	return s.Members(known, func(name string) error {
		value, err := s.Take()
		if err == nil && !each(name, value) {
			err = ErrSyntax
		}
		return err
	}) == nil && s.End()
}

// Members walks the object that begins here as Fields does. A name that differs from a known one only in
// case is an error.
func (s *Scanner) Members(known []string, member func(name string) error) error {
	return s.Fields(func(key []byte) error {
		name := intern(Name(key), known)
		if !slices.Contains(known, name) && slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, name) }) {
			return ErrSyntax
		}
		return member(name)
	})
}

// intern is a name as a string; one that is known is not copied.
func intern(name []byte, known []string) string {
	for _, k := range known {
		if k == string(name) {
			return k
		}
	}
	return string(name)
}

// Fields is the members of a valid object by name. It is false for anything but an object, for a name
// that comes twice, and for one that differs from a known name only in case.
func Fields(object []byte, known ...string) (map[string]json.RawMessage, bool) {
	fields := make(map[string]json.RawMessage, len(known))
	ok := Members(object, known, func(name string, value json.RawMessage) bool {
		_, twice := fields[name]
		fields[name] = value
		return !twice
	})
	if !ok {
		return nil, false
	}
	return fields, true
}

// Elements yields the elements of a valid array.
func Elements(array []byte) iter.Seq[json.RawMessage] {
	return func(yield func(json.RawMessage) bool) {
		s := Scanner{Data: array}
		s.Space()
		_ = s.Array(func(element []byte) error {
			if !yield(element[:len(element):len(element)]) {
				return ErrSyntax // stops the search
			}
			return nil
		})
	}
}
