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
	maxBatch   = 100 // messages per batch
	maxUnknown = 100 // members per message that JSON-RPC does not define
)

// Message is one JSON-RPC message. Its fields hold the original text.
type Message struct {
	ID       json.RawMessage // nil if absent
	Method   string          // "" for a response
	Params   json.RawMessage // nil if absent
	Progress bool            // params._meta contains a progress token; null is treated as none
	Payload  json.RawMessage // the result or error, if the message is a response
	Failed   bool            // whether Payload is an error, if the message is a response

	params rawjson.List // the members of Params
}

// IsCall reports whether the message is a request that expects an answer.
func (m *Message) IsCall() bool { return m.Method != "" && m.ID != nil }

// Param returns a member of the params, or nil if it is absent.
func (m *Message) Param(name string) json.RawMessage { return m.params.Get(name) }

// Release drops the params once they are no longer needed, so that the message does not keep a large body in memory.
func (m *Message) Release() {
	m.Params, m.params = nil, nil
}

// IsResponse reports whether the message is a response.
func (m *Message) IsResponse() bool { return m.Method == "" }

func invalid(format string, args ...any) *fault {
	return badRequest(rpc.CodeInvalidRequest, fmt.Sprintf(format, args...))
}

func notJSON() *fault { return badRequest(rpc.CodeParseError, "the body is not valid JSON") }

func notObject() *fault {
	return invalid("a message must be a JSON object with lower-case names, each used once")
}

// parseBody parses a body: one message or a batch. It refuses anything that two parsers could read differently: text
// that is not UTF-8, a repeated name, and a known name in a different case.
func parseBody(body []byte) (messages []Message, batch bool, err *fault) {
	body = bytes.TrimLeft(body, " \t\r\n")
	if !utf8.Valid(body) {
		return nil, false, notJSON()
	}
	if len(body) > 0 && body[0] == '{' { // reading the members checks the whole object, which saves a pass
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
		return nil, true, invalid("a batch must contain between 1 and %d messages", maxBatch)
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

// envelope contains the members of a message. An absent member is nil.
type envelope struct {
	version, id, method, params, result, failure json.RawMessage

	list     rawjson.List // the members of params
	listable bool         // params are an object whose names are unique and in their exact case
}

// member returns the field for a member, or nil for one that JSON-RPC does not define.
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

// read reads the members of a message and, in the same pass, those of its params. It refuses the same texts as
// rawjson.Fields.
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

// take consumes the value of a member. Params that cannot be listed are taken whole; the error is reported once the ID
// is known.
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

func parse(text []byte) (Message, *fault) {
	var e envelope
	if !e.read(text) {
		return Message{}, notObject()
	}
	if string(e.version) != `"2.0"` {
		return Message{}, invalid(`jsonrpc must be "2.0"`)
	}
	m := Message{ID: e.id, Params: e.params}
	if m.ID != nil && !isTextOrNumber(m.ID) {
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

// scalar returns the text of a JSON string or number.
func scalar(value json.RawMessage) string {
	if len(value) > 0 && value[0] == '"' {
		return rawjson.Text(value)
	}
	return string(value)
}

// readParams checks params and _meta as strictly as the message itself, because they contain the tool name and the
// progress token.
func (m *Message) readParams(e *envelope) *fault {
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
		token := members.Get("progressToken")
		m.Progress = token != nil && string(token) != "null"
		if m.Progress && !isTextOrNumber(token) {
			return badRequest(rpc.CodeInvalidParams, "params._meta.progressToken must be a string or a number").of(m.ID)
		}
	}
	if !ok {
		return invalid("params and its _meta must be JSON objects, with each name used once and in its exact case").of(m.ID)
	}
	return nil
}

// isTextOrNumber reports whether a JSON value is a string or a number, as IDs and progress tokens are.
func isTextOrNumber(value json.RawMessage) bool {
	return value[0] == '"' || value[0] == '-' || '0' <= value[0] && value[0] <= '9'
}

// orEmpty returns value, or an empty object if it is nil.
func orEmpty(value json.RawMessage) json.RawMessage {
	if value == nil {
		return json.RawMessage("{}")
	}
	return value
}
