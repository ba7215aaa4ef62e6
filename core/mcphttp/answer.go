package mcphttp

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
)

// codeServer is the JSON-RPC code of refusals that have no code of their own (contract part 7).
const codeServer = -32000

// fault is a request that failed before any session saw it: an HTTP status, and a JSON-RPC error
// as its body so that clients show its message.
type fault struct {
	status     int
	code       int64
	message    string
	data       any
	id         json.RawMessage // of the message at fault; nil is null
	retryAfter time.Duration
}

func badRequest(code int64, message string) *fault {
	return &fault{status: fiber.StatusBadRequest, code: code, message: message}
}

func (f *fault) of(id json.RawMessage) *fault {
	f.id = id
	return f
}

// sessionNotFound is spec 4.10 rule 6. Its bytes depend on the reason alone.
func sessionNotFound(reason string) *fault {
	return &fault{status: fiber.StatusNotFound, code: codeServer, message: "Session not found", data: map[string]string{"reason": reason}}
}

// The reasons of spec 4.10 rule 6.
const (
	reasonNotFound    = "not_found"
	reasonUnavailable = "unavailable"
)

// busy is an answer that says when to come back.
func busy(status int, message string, after time.Duration) *fault {
	return &fault{status: status, code: codeServer, message: message, retryAfter: after}
}

// denied turns an error of access into an answer; what it does not know is internal and not shown.
func (e *Endpoint) denied(err error) *fault {
	known, ok := asError(err)
	if !ok {
		e.log.Error("A request to /mcp failed inside the server", "error", err)
		return &fault{status: fiber.StatusInternalServerError, code: codeServer, message: "internal error"}
	}
	f := &fault{code: codeServer, message: known.Message, data: map[string]any{"error": known.Code}}
	switch known.Code {
	case core.CodeWorkspaceRequired, core.CodeBadRequest:
		f.status = fiber.StatusBadRequest
	case core.CodeWorkspaceDenied, core.CodeForbidden:
		f.status = fiber.StatusForbidden
	case core.CodeNotFound:
		f.status = fiber.StatusNotFound
	case core.CodeUnavailable:
		f.status, f.retryAfter = fiber.StatusServiceUnavailable, known.RetryAfter
		if f.retryAfter == 0 {
			f.retryAfter = 5 * time.Second
		}
	default:
		e.log.Error("A request to /mcp failed inside the server", "error", err)
		f.status, f.message = fiber.StatusInternalServerError, "internal error"
	}
	return f
}

// send writes the fault as the answer.
func (f *fault) send(c *fiber.Ctx) error {
	f.hint(c)
	return sendJSON(c, f.status, errorBody(f.id, f.code, f.message, f.data))
}

// hint says when to come back, in whole seconds.
func (f *fault) hint(c *fiber.Ctx) {
	if f.retryAfter > 0 {
		c.Set(fiber.HeaderRetryAfter, strconv.Itoa(int(math.Ceil(f.retryAfter.Seconds()))))
	}
}

func sendJSON(c *fiber.Ctx, status int, body []byte) error {
	c.Response().Header.SetContentType(fiber.MIMEApplicationJSON)
	return c.Status(status).Send(body)
}

// errorBody is a JSON-RPC error response, its keys in the order of spec 4.10 rule 6. A nil id is
// null; nil data is left out.
func errorBody(id json.RawMessage, code int64, message string, data any) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false) // a message is for people, and no page holds it
	err := enc.Encode(struct {
		Version string          `json:"jsonrpc"`
		Error   rpcError        `json:"error"`
		ID      json.RawMessage `json:"id"`
	}{"2.0", rpcError{code, message, data}, id})
	if err != nil { // data that a bundle wrote was not JSON
		return errorBody(id, code, message, nil)
	}
	return bytes.TrimSuffix(body.Bytes(), []byte("\n"))
}

type rpcError struct {
	Code    int64  `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

// resultBody is a JSON-RPC response around a result that is not decoded, and may come in parts.
func resultBody(id json.RawMessage, result ...[]byte) []byte {
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

// notificationBody is a JSON-RPC notification around params that are not decoded.
func notificationBody(method string, params json.RawMessage) []byte {
	quoted, _ := json.Marshal(method) // a string always marshals
	b := make([]byte, 0, len(quoted)+len(params)+40)
	b = append(append(b, `{"jsonrpc":"2.0","method":`...), quoted...)
	if len(params) > 0 {
		b = append(append(b, `,"params":`...), params...)
	}
	return append(b, '}')
}

// plain writes the fault with the body of the HTTP API (contract part 1): the discovery documents
// are not JSON-RPC.
func (f *fault) plain(c *fiber.Ctx) error {
	code := core.CodeInternal
	switch f.status {
	case fiber.StatusNotFound:
		code = core.CodeNotFound
	case fiber.StatusServiceUnavailable:
		code = core.CodeUnavailable
	}
	f.hint(c)
	return c.Status(f.status).JSON(map[string]any{"error": code, "message": f.message})
}
