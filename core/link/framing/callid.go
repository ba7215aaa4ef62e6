package framing

import (
	"bytes"

	"github.com/ropewalk/ropewalk/core/rawjson"
)

// LastSDKID is the highest request id that is left to the MCP SDK, which counts from 1 and makes a few
// requests only. The ids of calls are above it.
const LastSDKID = 1 << 20

// CallID finds the id of the call that a message answers which cannot be read whole, given both of its
// ends: some apps write the id before the result, some after it. A wrong guess could only fail a call of
// the app that sent the broken message.
func CallID(head, tail []byte) (id int64, found bool) {
	s := rawjson.Scanner{Data: head}
	s.Space()
	_ = s.Object(func(key, value []byte) error {
		if string(rawjson.Name(key)) == "id" && !found {
			id, found = Integer(value)
		}
		return nil
	})
	if !found {
		id, found = trailingID(tail)
	}
	return id, found && id > LastSDKID
}

// trailingID reads an id that ends the message, such as ,"id":7} with or without spaces.
func trailingID(tail []byte) (int64, bool) {
	i := bytes.LastIndex(tail, []byte(`"id"`))
	if i < 0 {
		return 0, false
	}
	rest, colon := bytes.CutPrefix(bytes.TrimLeft(tail[i+len(`"id"`):], " \t\r\n"), []byte{':'})
	rest = bytes.TrimLeft(rest, " \t\r\n")
	number := rest[:countDigits(rest)]
	if !colon || !rawjson.Valid(number) {
		return 0, false
	}
	id, ok := Integer(number)
	// Only the version may follow the id.
	rest = bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(rest[len(number):]), []byte{'}'}))
	return id, ok && (len(rest) == 0 || bytes.HasPrefix(rest, []byte(",")) && bytes.HasSuffix(rest, []byte(`"2.0"`)))
}

// countDigits returns how many bytes of an integer data begins with.
func countDigits(data []byte) int {
	n := 0
	for n < len(data) && (data[n] == '-' && n == 0 || '0' <= data[n] && data[n] <= '9') {
		n++
	}
	return n
}
