// Package rpc defines the parts of JSON-RPC 2.0 that every layer of a call shares: notifications and errors as
// they pass from an app to a client, and the framing of responses, requests and notifications.
//
// It does not read messages (link and mcphttp do, each as strictly as its peer requires) and knows
// nothing of MCP's methods. It is a package of its own so that the HTTP packages need not import link,
// and link need not import them.
package rpc

import (
	"encoding/json"
	"fmt"

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

// Error is a JSON-RPC error (JSON-RPC 2.0 part 5.1) that an app or a client answered with. Data is unchanged.
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

	// Notify receives what the client says about the question before it answers, such as its progress, with the app's
	// own progress token. It may wait until the app has accepted it. It is nil where that is not possible.
	Notify func(Notification)
}

// Encode returns the notification as a message. It does not decode the params.
func (n Notification) Encode() []byte {
	b := make([]byte, 0, len(n.Method)+len(n.Params)+48)
	return appendCall(append(b, `{"jsonrpc":"2.0",`...), n.Method, n.Params)
}

// Request returns a request as a message. It does not decode the params.
func Request(id json.RawMessage, method string, params json.RawMessage) []byte {
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
