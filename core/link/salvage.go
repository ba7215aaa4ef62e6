package link

import (
	"bytes"

	"github.com/ropewalk/ropewalk/core/rawjson"
)

// salvage finds the id of one of our calls in a message that cannot be read whole, given both of
// its ends: some write the id before the result, some after it. A wrong guess could only fail a
// call of the same bundle, which is misbehaving anyway.
func salvage(head, tail []byte) (id int64, found bool) {
	s := rawjson.Scanner{Data: head}
	s.Space()
	_ = s.Object(func(key, value []byte) error {
		if string(rawjson.Name(key)) == "id" && !found {
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
	rest, colon := bytes.CutPrefix(bytes.TrimLeft(tail[i+len(`"id"`):], " \t\r\n"), []byte{':'})
	rest = bytes.TrimLeft(rest, " \t\r\n")
	number := rest[:digits(rest)]
	if !colon || !rawjson.Valid(number) {
		return 0, false
	}
	id, ok := integer(number)
	// What follows the id, if anything, is the version.
	rest = bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(rest[len(number):]), []byte{'}'}))
	return id, ok && (len(rest) == 0 || bytes.HasPrefix(rest, []byte(",")) && bytes.HasSuffix(rest, []byte(`"2.0"`)))
}

// digits is how many bytes of an integer data begins with.
func digits(data []byte) int {
	n := 0
	for n < len(data) && (data[n] == '-' && n == 0 || '0' <= data[n] && data[n] <= '9') {
		n++
	}
	return n
}
