// Package rpc reads and writes JSON-RPC 2.0 messages without decoding their contents. Every layer of a call shares it:
// the connections to apps, the clients at /mcp, and everything in between.
//
// It writes requests (Request), notifications and results, and reads what apps send. It splits streams into lines
// (LineReader) and server-sent events (EventReader) of bounded size, splits messages into their members (Envelope),
// and finds the call that a damaged message answers (CallID).
//
// It opens no connections, tracks no calls, and knows nothing of MCP's methods. mcphttp reads the messages of clients
// itself, because they are held to stricter rules than those of apps.
package rpc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/ropewalk/ropewalk/core/rawjson"
)

// The error codes of JSON-RPC 2.0 (part 5.1).
const (
	CodeParseError     = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternalError  = -32603
)

// Error is a JSON-RPC error (JSON-RPC 2.0 part 5.1) that an app or a client responded with. Data is unchanged.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *Error) Error() string { return fmt.Sprintf("%s (code %d)", e.Message, e.Code) }

// Notification is one JSON-RPC notification.
type Notification struct {
	Method string
	Params json.RawMessage
}

// WithToken returns a copy of a progress notification (notifications/progress) with another progress token. A
// notification without a token is returned unchanged.
func (n Notification) WithToken(token json.RawMessage) Notification {
	if at, err := rawjson.Find(n.Params, "progressToken"); err == nil && !at.Empty() {
		n.Params = rawjson.Replace(n.Params, at, token)
	}
	return n
}

// Question is a request from an app to its client: elicitation/create, sampling/createMessage or roots/list.
type Question struct {
	Method     string
	Params     json.RawMessage
	FromServer bool // asked by this server, not by the app

	// Notify passes on the client's notifications about the question, such as its progress, with the app's own progress
	// token. It may block until the app has accepted the notification. It is nil if notifications cannot be passed on.
	Notify func(Notification)
}

// Encode returns the notification as a message. It does not decode the params.
func (n Notification) Encode() []byte {
	b := make([]byte, 0, len(n.Method)+len(n.Params)+48)
	return appendCall(append(b, `{"jsonrpc":"2.0",`...), n.Method, n.Params)
}

// EncodeRequest returns a request as a message. It does not decode the params.
func EncodeRequest(id json.RawMessage, method string, params json.RawMessage) []byte {
	b := make([]byte, 0, len(id)+len(method)+len(params)+48)
	b = append(append(b, `{"jsonrpc":"2.0","id":`...), id...)
	return appendCall(append(b, ','), method, params)
}

func appendCall(b []byte, method string, params json.RawMessage) []byte {
	quoted, _ := json.Marshal(method) // a string always marshals
	b = append(append(b, `"method":`...), quoted...)
	if len(params) > 0 {
		b = append(append(b, `,"params":`...), params...)
	}
	return append(b, '}')
}

// Result returns a response with the given result, which may consist of several parts. It does not decode the result.
func Result(id json.RawMessage, result ...[]byte) []byte {
	size := len(id) + 40
	for _, part := range result {
		size += len(part)
	}
	b := make([]byte, 0, size)
	b = append(append(b, `{"jsonrpc":"2.0","id":`...), id...)
	b = append(b, `,"result":`...)
	for _, part := range result {
		b = append(b, part...)
	}
	return append(b, '}')
}

// Request is a request whose params have been checked.
type Request struct {
	Method string
	Params []byte      // nil if there are none
	Header http.Header // sent with the request over HTTP; may be nil
	Sender string      // requests with the same Sender are written in order; "" for the server itself

	token       rawjson.Span // the caller's progress token in Params; empty if there is none
	invalidMeta bool         // params._meta is not an object
	added       []byte       // JSON text inserted into Params; may be nil
	addAt       int          // where in Params to insert added; before token
}

// ReadRequest checks that params are one JSON object, so that their text cannot break out of the message. It
// finds the progress token, and returns the position of params._meta, which is empty if params have no _meta object.
func ReadRequest(method string, params []byte) (r Request, meta rawjson.Span, err error) {
	r = Request{Method: method, Params: params}
	if !validMethod(method) {
		return r, meta, fmt.Errorf("method %q has characters that MCP methods never contain", method)
	}
	if len(params) == 0 {
		r.Params = nil
		return r, meta, nil
	}
	meta, err = rawjson.Find(params, "_meta")
	if err == nil && !meta.Empty() {
		if params[meta.From] != '{' {
			r.invalidMeta = true
			return r, rawjson.Span{}, nil
		}
		r.token, err = rawjson.Find(meta.In(params), "progressToken")
		r.token = r.token.After(meta.From)
	}
	if err != nil {
		return r, meta, fmt.Errorf("%w: %w", ErrParams, err)
	}
	return r, meta, nil
}

// AddMeta inserts members at the start of params._meta when the request is sent. at is the span that ReadRequest
// returned. members are JSON text without braces. The params must not contain them already. A _meta that is not an
// object is left unchanged.
func (r *Request) AddMeta(at rawjson.Span, members []byte) {
	var before, after string
	r.addAt = at.From + 1
	switch {
	case r.invalidMeta:
		return
	case at.Empty() && len(r.Params) == 0:
		before, after, r.addAt = `{"_meta":{`, "}}", 0
	case at.Empty():
		r.addAt = bytes.IndexByte(r.Params, '{') + 1
		before, after = `"_meta":{`, "}"
	}
	if rest := bytes.TrimLeft(r.Params[r.addAt:], " \t\r\n"); len(rest) > 0 && rest[0] != '}' {
		after += ","
	}
	r.added = make([]byte, 0, len(before)+len(members)+len(after))
	r.added = append(append(append(r.added, before...), members...), after...)
}

// HasParams reports whether params are sent.
func (r *Request) HasParams() bool { return r.Params != nil || r.added != nil }

// Size estimates how many bytes AppendMessage appends.
func (r *Request) Size() int { return len(r.Params) + len(r.added) + len(r.Method) + 128 }

func validMethod(method string) bool {
	for _, c := range []byte(method) {
		if c <= ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return method != ""
}

// AppendMessage appends the request with an id, followed by a line feed.
func (r *Request) AppendMessage(buf []byte, id int64) []byte {
	buf = append(buf, `{"jsonrpc":"2.0","id":`...)
	buf = strconv.AppendInt(buf, id, 10)
	buf = append(buf, `,"method":"`...)
	buf = append(append(buf, r.Method...), '"')
	if r.HasParams() {
		buf = r.AppendParams(append(buf, `,"params":`...), id)
	}
	return append(buf, '}', '\n')
}

// AppendParams appends the params on one line, with the caller's progress token replaced.
func (r *Request) AppendParams(buf []byte, token int64) []byte {
	start, from := len(buf), 0
	if r.added != nil {
		buf, from = append(append(buf, r.Params[:r.addAt]...), r.added...), r.addAt
	}
	if !r.token.Empty() {
		buf = strconv.AppendInt(append(buf, r.Params[from:r.token.From]...), token, 10)
		from = r.token.To
	}
	buf = append(buf, r.Params[from:]...)
	OneLine(buf[start:])
	return buf
}

// CallerToken returns a copy of the progress token as the caller wrote it, or nil if there is none.
func (r *Request) CallerToken() []byte {
	if r.token.Empty() {
		return nil
	}
	return bytes.Clone(r.Params[r.token.From:r.token.To])
}

// ProgressToken finds the token in the params of a progress notification. ok is false if it is not an integer,
// because the server's own tokens are integers.
func ProgressToken(params []byte) (id int64, token rawjson.Span, ok bool) {
	token, err := rawjson.Find(params, "progressToken")
	if err != nil || token.Empty() {
		return 0, token, false
	}
	id, ok = Integer(token.In(params))
	return id, token, ok
}
