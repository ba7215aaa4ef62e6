package mcphttp

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/ropewalk/ropewalk/core/rawjson"
)

const maxBatch = 100 // messages of one batch

// message is one JSON-RPC message, taken apart once. Everything behind this file works on these
// parts, never on the body again, so no two layers can read a body differently.
type message struct {
	id       json.RawMessage            // as written; nil when absent
	method   string                     // "" for a response
	params   json.RawMessage            // nil when absent
	fields   map[string]json.RawMessage // of params, as written
	progress bool                       // params._meta holds a progress token
	payload  json.RawMessage            // a response's result or error, as written
	failed   bool                       // a response that carries an error
}

func (m message) isCall() bool     { return m.method != "" && m.id != nil }
func (m message) isResponse() bool { return m.method == "" }

// parse takes a body apart. It refuses what two parsers might read differently: text that is not
// UTF-8, a key that comes twice, and a known key in another case (hardening row 3).
func parse(body []byte) (messages []message, batch bool, err *fault) {
	body = bytes.TrimLeft(body, " \t\r\n")
	if !utf8.Valid(body) || !rawjson.Valid(body) {
		return nil, false, badRequest(jsonrpc.CodeParseError, "the body is not valid JSON")
	}
	if body[0] != '[' {
		m, err := parseOne(body)
		return []message{m}, false, err
	}
	var parts []json.RawMessage
	for part := range elements(body) {
		parts = append(parts, part)
	}
	if len(parts) == 0 || len(parts) > maxBatch {
		return nil, true, badRequest(jsonrpc.CodeInvalidRequest, "a batch holds 1 to 100 messages")
	}
	for _, part := range parts {
		m, err := parseOne(part)
		if err != nil {
			return nil, true, err
		}
		messages = append(messages, m)
	}
	return messages, true, nil
}

// envelope is the members of a message, each nil when it is absent.
type envelope struct{ version, id, method, params, result, failure json.RawMessage }

// member is where a member goes; nil for one that no message has.
func (e *envelope) member(key string) *json.RawMessage {
	switch key {
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

// open takes a message's members out of its text, as object does, without a map.
func (e *envelope) open(text []byte) bool {
	var others []string
	return walk(text, []string{"jsonrpc", "id", "method", "params", "result", "error"}, func(key string, value json.RawMessage) bool {
		if to := e.member(key); to != nil {
			twice := *to != nil
			*to = value
			return !twice
		}
		twice := slices.Contains(others, key)
		others = append(others, key)
		return !twice && len(others) < maxOthers
	})
}

// maxOthers is how many members that mean nothing a message may have.
const maxOthers = 100

func parseOne(text []byte) (message, *fault) {
	var e envelope
	if !e.open(text) {
		return message{}, badRequest(jsonrpc.CodeInvalidRequest, "a message is a JSON object whose keys come once, in lower case")
	}
	if string(e.version) != `"2.0"` {
		return message{}, badRequest(jsonrpc.CodeInvalidRequest, `jsonrpc must be "2.0"`)
	}
	m := message{id: e.id, params: e.params}
	if m.id != nil && m.id[0] != '"' && m.id[0] != '-' && (m.id[0] < '0' || m.id[0] > '9') {
		return message{}, badRequest(jsonrpc.CodeInvalidRequest, "id must be a string or a number")
	}
	if e.method != nil {
		if m.method = textOf(e.method); m.method == "" || e.result != nil || e.failure != nil {
			return message{}, badRequest(jsonrpc.CodeInvalidRequest, "method must be a non-empty string, without result or error")
		}
		return m, m.readParams()
	}
	if m.id == nil || (e.result == nil) == (e.failure == nil) {
		return message{}, badRequest(jsonrpc.CodeInvalidRequest, "a message needs a method, or an id and either result or error")
	}
	m.payload, m.failed = e.result, e.failure != nil
	if m.failed {
		m.payload = e.failure
	}
	return m, nil
}

// textOf is a JSON string's text, "" for any other value and for none.
func textOf(value json.RawMessage) string {
	if len(value) == 0 || value[0] != '"' {
		return ""
	}
	return rawjson.Text(value)
}

// readParams holds params to the same strictness, down to _meta: names of tools and progress
// tokens are decided by them.
func (m *message) readParams() *fault {
	if m.id == nil && !strings.HasPrefix(m.method, "notifications/") {
		return badRequest(jsonrpc.CodeInvalidRequest, "a request needs an id")
	}
	if m.params == nil {
		return nil
	}
	fields, ok := object(m.params, "name", "arguments", "_meta", "uri", "cursor", "requestId")
	m.fields = fields
	if ok && fields["_meta"] != nil {
		var meta map[string]json.RawMessage
		meta, ok = object(fields["_meta"], "progressToken")
		m.progress = meta["progressToken"] != nil
	}
	if !ok {
		return badRequest(jsonrpc.CodeInvalidRequest, "params and its _meta are JSON objects whose keys come once, in their exact case").of(m.id)
	}
	return nil
}

// object splits a JSON object that rawjson.Valid has passed. It is false for anything else than an
// object, for a key that comes twice, and for a known key in another case.
func object(text []byte, known ...string) (map[string]json.RawMessage, bool) {
	fields := make(map[string]json.RawMessage, len(known))
	ok := walk(text, known, func(key string, value json.RawMessage) bool {
		_, twice := fields[key]
		fields[key] = value
		return !twice
	})
	if !ok {
		return nil, false
	}
	return fields, true
}

// walk gives the members of such an object to each, in order. It is false for anything else than an
// object, for a known key in another case, and when each is.
func walk(text []byte, known []string, each func(key string, value json.RawMessage) bool) bool {
	if len(text) == 0 || text[0] != '{' {
		return false
	}
	for i := skipSpace(text, 1); text[i] != '}'; {
		end := skipValue(text, i)
		key, ok := unquote(text[i:end], known)
		if !ok || !slices.Contains(known, key) && slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, key) }) {
			return false
		}
		i = skipSpace(text, skipSpace(text, end)+1) // past the colon
		end = skipValue(text, i)
		if !each(key, text[i:end:end]) {
			return false
		}
		if i = skipSpace(text, end); text[i] == ',' {
			i = skipSpace(text, i+1)
		}
	}
	return true
}

// elements yields the elements of a JSON array that rawjson.Valid has passed.
func elements(text []byte) func(yield func(json.RawMessage) bool) {
	return func(yield func(json.RawMessage) bool) {
		for i := skipSpace(text, 1); text[i] != ']'; {
			end := skipValue(text, i)
			if !yield(text[i:end:end]) {
				return
			}
			if i = skipSpace(text, end); text[i] == ',' {
				i = skipSpace(text, i+1)
			}
		}
	}
}

// unquote is a key's text; one that is known costs no memory.
func unquote(quoted []byte, known []string) (string, bool) {
	plain := quoted[1 : len(quoted)-1]
	for _, k := range known {
		if string(plain) == k {
			return k, true
		}
	}
	if bytes.IndexByte(plain, '\\') < 0 {
		return string(plain), true
	}
	var s string
	err := json.Unmarshal(quoted, &s)
	return s, err == nil
}

func skipSpace(text []byte, i int) int {
	for text[i] == ' ' || text[i] == '\t' || text[i] == '\r' || text[i] == '\n' {
		i++
	}
	return i
}

// skipValue returns the end of the value that starts at i.
func skipValue(text []byte, i int) int { return rawjson.Skip(text, i) }
