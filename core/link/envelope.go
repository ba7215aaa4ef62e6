package link

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// errEnvelope means that a JSON object is not one JSON-RPC 2.0 message, or that two readers could
// take it for different ones.
var errEnvelope = errors.New("not a JSON-RPC 2.0 message")

// idKind says what a message carries as its id.
type idKind byte

const (
	idAbsent idKind = iota
	idNull
	idNumber
	idText
)

// envelope is one message taken apart, but not decoded: params, result and failure are spans of
// the frame it was read from.
type envelope struct {
	kind    idKind
	number  int64  // the id, for idNumber
	text    string // the id, for idText
	method  string // "" in a response
	params  []byte
	result  []byte
	failure []byte // the member error
}

func (e *envelope) response() bool     { return e.method == "" }
func (e *envelope) notification() bool { return e.method != "" && e.kind == idAbsent }

// id is the message's id as the SDK wants it.
func (e *envelope) id() jsonrpc.ID {
	var id jsonrpc.ID
	switch e.kind {
	case idNumber:
		id, _ = jsonrpc.MakeID(float64(e.number))
	case idText:
		id, _ = jsonrpc.MakeID(e.text)
	case idAbsent, idNull:
	}
	return id
}

// scanEnvelope takes a frame apart and checks all of it. A frame in which a member of the envelope
// is given twice, or in another case, is refused: its readers could disagree. On an error the
// envelope still holds the id when that much was clear.
func scanEnvelope(frame []byte) (envelope, error) {
	var e envelope
	var version, methodSeen bool
	s := rawjson.Scanner{Data: frame}
	s.Space()
	err := s.Object(func(key, value []byte) error {
		switch k := rawjson.Name(key); string(k) {
		case "jsonrpc":
			if version || string(value) != `"2.0"` {
				return errEnvelope
			}
			version = true
		case "id":
			return e.setID(value)
		case "method":
			if methodSeen || value[0] != '"' {
				return errEnvelope
			}
			methodSeen, e.method = true, rawjson.Text(value)
		case "params":
			return once(&e.params, value)
		case "result":
			return once(&e.result, value)
		case "error":
			return once(&e.failure, value)
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
		return e, fmt.Errorf("%w: no member jsonrpc", errEnvelope)
	}
	return e, e.check(methodSeen)
}

func once(field *[]byte, value []byte) error {
	if *field != nil {
		return fmt.Errorf("%w: a member is given twice", errEnvelope)
	}
	*field = value
	return nil
}

// checkForeign refuses names that a careless reader takes for a member of the envelope.
func checkForeign(key []byte) error {
	for _, known := range []string{"jsonrpc", "id", "method", "params", "result", "error"} {
		if bytes.EqualFold(key, []byte(known)) {
			return fmt.Errorf("%w: member %q is not written %q", errEnvelope, key, known)
		}
	}
	return nil
}

// check holds the message to the shapes of JSON-RPC 2.0 parts 4 and 5. Of result and error, one may
// be there as null: JSON-RPC 1.0 wanted it so, and libraries still do it.
func (e *envelope) check(methodSeen bool) error {
	switch {
	case e.result != nil && string(e.failure) == "null":
		e.failure = nil
	case e.failure != nil && string(e.result) == "null":
		e.result = nil
	}
	switch {
	case methodSeen && (e.method == "" || e.kind == idNull || e.result != nil || e.failure != nil):
		return fmt.Errorf("%w: not a request", errEnvelope)
	case !methodSeen && (e.params != nil || (e.result == nil) == (e.failure == nil)):
		return fmt.Errorf("%w: not a response", errEnvelope)
	case !methodSeen && e.kind == idAbsent:
		return fmt.Errorf("%w: a response without an id", errEnvelope)
	}
	return nil
}

func (e *envelope) setID(value []byte) error {
	if e.kind != idAbsent {
		e.kind = idNull // nobody's
		return fmt.Errorf("%w: id is given twice", errEnvelope)
	}
	switch {
	case string(value) == "null":
		e.kind = idNull
	case value[0] == '"':
		e.kind, e.text = idText, rawjson.Text(value)
	default:
		n, ok := integer(value)
		if !ok {
			return fmt.Errorf("%w: id is neither an integer nor a string", errEnvelope)
		}
		e.kind, e.number = idNumber, n
	}
	return nil
}

// integer reads a JSON number that stands for an integer, 7.0 and 7e0 included.
func integer(value []byte) (int64, bool) {
	if n, err := strconv.ParseInt(string(value), 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(value), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// envelopeOf is the envelope of a message that the SDK decoded.
func envelopeOf(msg jsonrpc.Message) envelope {
	var e envelope
	var id jsonrpc.ID
	switch msg := msg.(type) {
	case *jsonrpc.Request:
		id, e.method, e.params = msg.ID, msg.Method, msg.Params
	case *jsonrpc.Response:
		id, e.result = msg.ID, msg.Result
		if msg.Error != nil {
			e.failure = failureOf(msg.Error)
		}
	}
	switch raw := id.Raw().(type) {
	case int64:
		e.kind, e.number = idNumber, raw
	case string:
		e.kind, e.text = idText, raw
	}
	return e
}

func failureOf(err error) []byte {
	known := &rpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
	if wire, ok := errors.AsType[*jsonrpc.Error](err); ok {
		known = &rpc.Error{Code: int(wire.Code), Message: wire.Message, Data: wire.Data}
	}
	raw, err := json.Marshal(known)
	if err != nil { // only data that is not JSON, which the SDK cannot have decoded
		raw = []byte(`{"code":-32603,"message":"unreadable error"}`)
	}
	return raw
}
