package mcphttp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/rpc"
)

const (
	maxBatch   = 100 // messages of one batch
	maxUnknown = 100 // members of one message that JSON-RPC does not know
)

// Message is one JSON-RPC message. Its parts are as they were written.
type Message struct {
	ID       json.RawMessage // nil when absent
	Method   string          // "" for a response
	Params   json.RawMessage // nil when absent
	Progress bool            // params._meta holds a progress token
	Payload  json.RawMessage // of a response: its result or error
	Failed   bool            // of a response: Payload is an error

	params rawjson.List // of Params
}

// IsCall reports whether the message is a request that wants an answer.
func (m *Message) IsCall() bool { return m.Method != "" && m.ID != nil }

// Param returns a member of the params, nil when it is absent.
func (m *Message) Param(name string) json.RawMessage { return m.params.Get(name) }

// Release drops the params, when nothing reads them any more: what is left of a message keeps no large
// body in memory.
func (m *Message) Release() {
	m.Params, m.params = nil, nil
}

// IsResponse reports whether the message is a response.
func (m *Message) IsResponse() bool { return m.Method == "" }

// MessageError says why a body is refused.
type MessageError struct {
	Code    int64 // of JSON-RPC
	Message string
	ID      json.RawMessage // of the message, nil when it is not known
}

func (e *MessageError) Error() string { return e.Message }

func invalid(format string, args ...any) *MessageError {
	return &MessageError{Code: rpc.CodeInvalidRequest, Message: fmt.Sprintf(format, args...)}
}

func notJSON() *MessageError {
	return &MessageError{Code: rpc.CodeParseError, Message: "the body is not valid JSON"}
}

func notObject() *MessageError {
	return invalid("a message is a JSON object whose names come once, in lower case")
}

// parseBody takes a body apart: one message, or a batch of them. It refuses what two readers could read
// differently: text that is not UTF-8, a name that comes twice, and a known name in another case.
func parseBody(body []byte) (messages []Message, batch bool, err *MessageError) {
	body = bytes.TrimLeft(body, " \t\r\n")
	if !utf8.Valid(body) {
		return nil, false, notJSON()
	}
	if len(body) > 0 && body[0] == '{' { // taking the members out checks the whole object: one pass less
		m, err := parse(body)
		if err != nil && !rawjson.Valid(body) {
			err = notJSON()
		}
		return []Message{m}, false, err
	}
	if !rawjson.Valid(body) {
		return nil, false, notJSON()
	}
	if body[0] != '[' {
		return nil, false, notObject()
	}
	var parts []json.RawMessage
	for part := range rawjson.Elements(body) {
		parts = append(parts, part)
	}
	if len(parts) == 0 || len(parts) > maxBatch {
		return nil, true, invalid("a batch holds 1 to %d messages", maxBatch)
	}
	for _, part := range parts {
		m, err := parse(part)
		if err != nil {
			return nil, true, err
		}
		messages = append(messages, m)
	}
	return messages, true, nil
}

// envelope is the members of a message, each nil when it is absent.
type envelope struct {
	version, id, method, params, result, failure json.RawMessage

	list     rawjson.List // of params
	listable bool         // params are an object whose names come once, in their exact case
}

// member is where a member goes; nil for one that no message has.
func (e *envelope) member(name string) *json.RawMessage {
	switch name {
	case "jsonrpc":
		return &e.version
	case "id":
		return &e.id
	case "method":
		return &e.method
	case "params":
		return &e.params
	case "result":
		return &e.result
	case "error":
		return &e.failure
	}
	return nil
}

// read takes the members out of a message, and those of its params in the same pass. It refuses what
// rawjson.Fields refuses.
func (e *envelope) read(text []byte) bool {
	var unknown []string
	s := rawjson.Scanner{Data: text}
	s.Space()
	return s.Members([]string{"jsonrpc", "id", "method", "params", "result", "error"}, func(name string) error {
		value, err := e.take(&s, name)
		if err != nil {
			return err
		}
		if to := e.member(name); to != nil {
			if *to != nil {
				return rawjson.ErrDuplicate
			}
			*to = value
			return nil
		}
		if slices.Contains(unknown, name) || len(unknown)+1 >= maxUnknown {
			return rawjson.ErrDuplicate
		}
		unknown = append(unknown, name)
		return nil
	}) == nil && s.End()
}

// take consumes the value of a member. Params that cannot be listed are taken whole: what is wrong with them
// is said once the id is known.
func (e *envelope) take(s *rawjson.Scanner, name string) (value []byte, err error) {
	if name != "params" {
		return s.Take()
	}
	begin := *s
	e.list, err = s.List("name", "arguments", "_meta", "uri", "cursor", "requestId")
	if e.listable = err == nil; !e.listable {
		*s = begin
		return s.Take()
	}
	return s.Since(&begin), nil
}

func parse(text []byte) (Message, *MessageError) {
	var e envelope
	if !e.read(text) {
		return Message{}, notObject()
	}
	if string(e.version) != `"2.0"` {
		return Message{}, invalid(`jsonrpc must be "2.0"`)
	}
	m := Message{ID: e.id, Params: e.params}
	if m.ID != nil && m.ID[0] != '"' && m.ID[0] != '-' && (m.ID[0] < '0' || m.ID[0] > '9') {
		return Message{}, invalid("id must be a string or a number")
	}
	if e.method != nil {
		if m.Method = rawjson.Text(e.method); m.Method == "" || e.result != nil || e.failure != nil {
			return Message{}, invalid("method must be a non-empty string, without result or error")
		}
		return m, m.readParams(&e)
	}
	if m.ID == nil || (e.result == nil) == (e.failure == nil) {
		return Message{}, invalid("a message needs a method, or an id and either result or error")
	}
	m.Payload, m.Failed = e.result, e.failure != nil
	if m.Failed {
		m.Payload = e.failure
	}
	return m, nil
}

// Scalar is the text of a JSON string or number.
func scalar(value json.RawMessage) string {
	if len(value) > 0 && value[0] == '"' {
		return rawjson.Text(value)
	}
	return string(value)
}

// readParams holds params to the same strictness, down to _meta: names of tools and progress tokens
// are decided by them.
func (m *Message) readParams(e *envelope) *MessageError {
	if m.ID == nil && !strings.HasPrefix(m.Method, "notifications/") {
		return invalid("a request needs an id")
	}
	if m.Params == nil {
		return nil
	}
	ok := e.listable
	m.params = e.list
	if meta := m.Param("_meta"); ok && meta != nil {
		var members rawjson.List
		members, ok = rawjson.ListOf(meta, "progressToken")
		m.Progress = members.Get("progressToken") != nil
	}
	if !ok {
		err := invalid("params and its _meta are JSON objects whose names come once, in their exact case")
		err.ID = m.ID
		return err
	}
	return nil
}

// orEmpty is a value, or an empty object for one that is absent.
func orEmpty(value json.RawMessage) json.RawMessage {
	if value == nil {
		return json.RawMessage("{}")
	}
	return value
}
