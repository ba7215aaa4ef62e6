package link

import (
	"bytes"
)

// salvage finds the id of one of our calls in a message that cannot be read whole, given both of
// its ends: some write the id before the result, some after it. A wrong guess could only fail a
// call of the same bundle, which is misbehaving anyway.
func salvage(head, tail []byte) (id int64, found bool) {
	s := scanner{data: head}
	s.space()
	_ = s.object(func(key, value []byte) error {
		if string(name(key)) == "id" && !found {
			id, found = integer(value)
		}
		return nil
	})
	if !found {
		id, found = trailing(tail)
	}
	return id, found && id > firstID
}

// trailing reads an id that ends the message: …,"id":7} with or without spaces.
func trailing(tail []byte) (int64, bool) {
	i := bytes.LastIndex(tail, []byte(`"id"`))
	if i < 0 {
		return 0, false
	}
	s := scanner{data: tail, pos: i + len(`"id"`)}
	s.space()
	if !s.take(':') {
		return 0, false
	}
	s.space()
	start := s.pos
	if s.number() != nil {
		return 0, false
	}
	id, ok := integer(tail[start:s.pos])
	// What follows the id, if anything, is the version.
	rest := bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(tail[s.pos:]), []byte{'}'}))
	return id, ok && (len(rest) == 0 || bytes.HasPrefix(rest, []byte(",")) && bytes.HasSuffix(rest, []byte(`"2.0"`)))
}
