package rpc

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/ropewalk/ropewalk/core/rawjson"
)

// errNotMessage means that a JSON object is not a valid JSON-RPC 2.0 message, or that two readers could
// interpret it differently.
var errNotMessage = errors.New("not a JSON-RPC 2.0 message")

// IDKind is the type of a message's id.
type IDKind byte

// The types of an id. A notification has none.
const (
	IDAbsent IDKind = iota
	IDNull
	IDNumber
	IDText
)

// Envelope contains the members of one message. They are not decoded: Params, Result and Error are spans of the
// scanned frame.
type Envelope struct {
	IDKind IDKind
	Number int64  // the id, if IDKind is IDNumber
	Text   string // the id, if IDKind is IDText
	Method string // "" in a response
	Params []byte
	Result []byte
	Error  []byte
}

// IsResponse reports whether the message answers a request.
func (e *Envelope) IsResponse() bool { return e.Method == "" }

// IsNotification reports whether the message expects no response.
func (e *Envelope) IsNotification() bool { return e.Method != "" && e.IDKind == IDAbsent }

// Scan splits a frame into its members and validates all of it. It rejects a frame that has a member of the
// Envelope twice, or in a different case, because readers could disagree about it. On an error the Envelope
// still contains the id if that was unambiguous.
func Scan(frame []byte) (Envelope, error) {
	var e Envelope
	var version, methodSeen bool
	s := rawjson.Scanner{Data: frame}
	s.Space()
	err := s.Object(func(key, value []byte) error {
		switch k := rawjson.Name(key); string(k) {
		case "jsonrpc":
			if version || string(value) != `"2.0"` {
				return errNotMessage
			}
			version = true
		case "id":
			return e.SetID(value)
		case "method":
			if methodSeen || value[0] != '"' {
				return errNotMessage
			}
			methodSeen, e.Method = true, rawjson.Text(value)
		case "params":
			return setOnce(&e.Params, value)
		case "result":
			return setOnce(&e.Result, value)
		case "error":
			return setOnce(&e.Error, value)
		default:
			return checkForeign(k)
		}
		return nil
	})
	switch {
	case err != nil:
		return e, err
	case !s.End():
		return e, rawjson.ErrSyntax
	case !version:
		return e, fmt.Errorf("%w: member jsonrpc is missing", errNotMessage)
	}
	return e, e.check(methodSeen)
}

func setOnce(field *[]byte, value []byte) error {
	if *field != nil {
		return fmt.Errorf("%w: duplicate member", errNotMessage)
	}
	*field = value
	return nil
}

// checkForeign rejects names that a case-insensitive reader would mistake for a member of the envelope.
func checkForeign(key []byte) error {
	for _, known := range []string{"jsonrpc", "id", "method", "params", "result", "error"} {
		if bytes.EqualFold(key, []byte(known)) {
			return fmt.Errorf("%w: member %q must be written %q", errNotMessage, key, known)
		}
	}
	return nil
}

// check accepts the requests, notifications and responses of JSON-RPC 2.0 (sections 4 and 5). One of result and
// error may be null, as JSON-RPC 1.0 required and some libraries still send.
func (e *Envelope) check(methodSeen bool) error {
	switch {
	case e.Result != nil && string(e.Error) == "null":
		e.Error = nil
	case e.Error != nil && string(e.Result) == "null":
		e.Result = nil
	}
	switch {
	case methodSeen && (e.Method == "" || e.IDKind == IDNull || e.Result != nil || e.Error != nil):
		return fmt.Errorf("%w: not a request", errNotMessage)
	case !methodSeen && (e.Params != nil || (e.Result == nil) == (e.Error == nil)):
		return fmt.Errorf("%w: not a response", errNotMessage)
	case !methodSeen && e.IDKind == IDAbsent:
		return fmt.Errorf("%w: response without an id", errNotMessage)
	}
	return nil
}

// SetID reads a JSON value as the id.
func (e *Envelope) SetID(value []byte) error {
	if e.IDKind != IDAbsent {
		e.IDKind = IDNull // with two ids, neither is used
		return fmt.Errorf("%w: duplicate id", errNotMessage)
	}
	switch {
	case string(value) == "null":
		e.IDKind = IDNull
	case value[0] == '"':
		e.IDKind, e.Text = IDText, rawjson.Text(value)
	default:
		n, ok := Integer(value)
		if !ok {
			return fmt.Errorf("%w: id is neither an integer nor a string", errNotMessage)
		}
		e.IDKind, e.Number = IDNumber, n
	}
	return nil
}

// Integer reads a JSON number that is an integer, including 7.0 and 7e0.
func Integer(value []byte) (int64, bool) {
	if n, err := strconv.ParseInt(string(value), 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(value), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}
