package rpc

import (
	"bytes"
	"errors"
	"sync/atomic"
	"unicode/utf8"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core/rawjson"
)

// These errors are wrapped with details.
var (
	// ErrTooLarge means that a response was larger than the limit and was discarded.
	ErrTooLarge = errors.New("the app's response is too large")
	// ErrMalformed means that a response was not a valid JSON-RPC response.
	ErrMalformed = errors.New("the app's response is malformed")
	// ErrParams means that the params are not a JSON object that can be sent. Nothing was sent.
	ErrParams = errors.New("params must be one JSON object without repeated names")
)

// LastSDKID is the highest request ID reserved for the MCP SDK, which counts from 1 and makes only a few
// requests. Call IDs are above it.
const LastSDKID = 1 << 20

// CallID finds the id of the call that an unreadable message answers, given both ends of the message: some apps
// write the id before the result, some after it. A wrong guess can only fail a call to the app that sent the
// broken message.
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

// trailingID reads an id at the end of the message, such as ,"id":7} with or without spaces.
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

// countDigits returns the number of bytes in the integer at the start of data.
func countDigits(data []byte) int {
	n := 0
	for n < len(data) && (data[n] == '-' && n == 0 || '0' <= data[n] && data[n] <= '9') {
		n++
	}
	return n
}

// ValidUTF8 returns data as UTF-8, which JSON must be (RFC 8259, section 8.1): invalid bytes become U+FFFD, as
// in most readers. Valid data is returned as is.
func ValidUTF8(data []byte) []byte {
	if utf8.Valid(data) {
		return data
	}
	return bytes.ToValidUTF8(data, []byte("\uFFFD"))
}

// OneLine replaces line breaks with spaces. In valid JSON, raw line breaks occur only between tokens.
func OneLine(raw []byte) {
	for _, c := range []byte{'\n', '\r'} {
		for rest := raw; ; {
			i := bytes.IndexByte(rest, c)
			if i < 0 {
				break
			}
			rest[i] = ' '
			rest = rest[i+1:]
		}
	}
}

// DiscardLog counts discarded messages and logs the 1st, 10th, 100th and so on, so that an app that sends many
// of them does not fill the log.
type DiscardLog struct {
	Logger  hclog.Logger
	Message string // the message of the log entry
	count   atomic.Int64
}

// Add counts one message, described by what, and logs it if one is due. It reports whether it logged.
func (d *DiscardLog) Add(what string) (logged bool) {
	n := d.count.Add(1)
	for power := int64(1); power <= n; power *= 10 {
		if logged = power == n; logged {
			d.Logger.Warn(d.Message, "what", what, "times", n)
		}
	}
	return logged
}

// Count returns how many messages have been discarded.
func (d *DiscardLog) Count() int64 { return d.count.Load() }
