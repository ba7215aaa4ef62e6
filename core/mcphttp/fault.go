package mcphttp

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/mcphttp/session"
)

// codeServer is the JSON-RPC code of refusals that have no code of their own.
const codeServer = -32000

// capRetry is the Retry-After for a client when every session is taken: sessions end when their clients close
// them or are idle, which nobody can predict better.
const capRetry = 10 * time.Second

// fault is a request that failed before a call was made of it: an HTTP status, and a JSON-RPC error as
// its body so that clients show its message.
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

// of returns the fault of the request with an id.
func (f *fault) of(id json.RawMessage) *fault {
	f.id = id
	return f
}

// unreadable is the fault of a body that cannot be read as messages.
func unreadable(err *MessageError) *fault { return badRequest(err.Code, err.Message).of(err.ID) }

// sessionNotFound answers a request whose session is not here. Its bytes depend on the reason alone.
func sessionNotFound(reason string) *fault {
	return &fault{status: fiber.StatusNotFound, code: codeServer, message: "Session not found", data: map[string]string{"reason": reason}}
}

// The reasons of sessionNotFound.
const (
	reasonNotFound    = "not_found"
	reasonUnavailable = "unavailable"
)

// retryLater is an answer that says when to try again.
func retryLater(status int, message string, after time.Duration) *fault {
	return &fault{status: status, code: codeServer, message: message, retryAfter: after}
}

func shuttingDown() *fault {
	return retryLater(fiber.StatusServiceUnavailable, session.ErrShutdown.Error(), 5*time.Second)
}

// refusedBySession turns an error of the session package into an answer. full is what to say of
// session.ErrFull.
func refusedBySession(err error, full string) *fault {
	if twice, ok := errors.AsType[*session.DuplicateError](err); ok {
		return badRequest(jsonrpc.CodeInvalidRequest, twice.Error()).of(twice.ID)
	}
	switch {
	case errors.Is(err, session.ErrShutdown):
		return shuttingDown()
	case errors.Is(err, session.ErrShare):
		return retryLater(fiber.StatusTooManyRequests, "you have too many sessions open; close one or try again later (limits.sessions)", capRetry)
	case errors.Is(err, session.ErrFull):
		return retryLater(fiber.StatusTooManyRequests, full, capRetry)
	case errors.Is(err, session.ErrTooManyCalls):
		return retryLater(fiber.StatusTooManyRequests, err.Error(), time.Second)
	}
	return sessionNotFound(reasonNotFound)
}

// denied turns an error of access into an answer; what it does not know is internal and not shown.
func (e *Endpoint) denied(err error) *fault {
	known, ok := errors.AsType[*core.Error](err)
	if !ok {
		e.log.Error("request failed", "error", err)
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
		e.log.Error("request failed", "error", err)
		f.status, f.message = fiber.StatusInternalServerError, "internal error"
	}
	return f
}

// send writes the fault as the answer.
func (f *fault) send(c *fiber.Ctx) error {
	f.setRetryAfter(c)
	return sendJSON(c, f.status, errorBody(f.id, rpcError{f.code, f.message, f.data}))
}

// setRetryAfter says when to try again, in whole seconds.
func (f *fault) setRetryAfter(c *fiber.Ctx) {
	if f.retryAfter > 0 {
		c.Set(fiber.HeaderRetryAfter, strconv.Itoa(int(math.Ceil(f.retryAfter.Seconds()))))
	}
}

func sendJSON(c *fiber.Ctx, status int, body []byte) error {
	c.Response().Header.SetContentType(fiber.MIMEApplicationJSON)
	return c.Status(status).Send(body)
}

type rpcError struct {
	Code    int64  `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

// errorBody is a JSON-RPC error response. A nil id is null; nil data is left out.
func errorBody(id json.RawMessage, failure rpcError) []byte {
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
	}{"2.0", failure, id})
	if err != nil { // data that a bundle wrote was not JSON
		return errorBody(id, rpcError{failure.Code, failure.Message, nil})
	}
	return bytes.TrimSuffix(body.Bytes(), []byte("\n"))
}

// plain writes the fault with the body of the HTTP API: the discovery documents are not JSON-RPC.
func (f *fault) plain(c *fiber.Ctx) error {
	code := core.CodeInternal
	switch f.status {
	case fiber.StatusNotFound:
		code = core.CodeNotFound
	case fiber.StatusServiceUnavailable:
		code = core.CodeUnavailable
	}
	f.setRetryAfter(c)
	return c.Status(f.status).JSON(map[string]any{"error": code, "message": f.message})
}
