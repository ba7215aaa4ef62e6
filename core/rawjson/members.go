package rawjson

import (
	"encoding/json"
	"iter"
	"slices"
	"strings"
)

// Members validates an object completely and passes its members to each, in order. It returns false for anything other
// than a single object, for a name that differs from a known one only in case, and if each returns false.
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

// Members walks the object at the current position like Fields. A name that differs from a known one only in
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

// intern returns a name as a string without copying known names.
func intern(name []byte, known []string) string {
	for _, k := range known {
		if k == string(name) {
			return k
		}
	}
	return string(name)
}

// Fields returns the members of a valid object by name. It returns false for anything other than an object, for
// a duplicate name, and for one that differs from a known name only in case.
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
