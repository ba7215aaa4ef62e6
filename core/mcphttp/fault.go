package mcphttp

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/limits"
	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// codeServer is the JSON-RPC code for refusals that have no specific code.
const codeServer = -32000

// capRetry is the Retry-After if the limit on sessions is reached. Sessions end when their clients close them or go
// idle, so no better estimate is possible.
const capRetry = 10 * time.Second

// fault is the error of a request that failed before it became a call: an HTTP status, and a JSON-RPC error as the body
// so that clients show its message.
type fault struct {
	status     int
	code       int
	message    string
	data       json.RawMessage
	id         json.RawMessage // the ID of the message at fault; nil means null
	retryAfter time.Duration
}

func badRequest(code int, message string) *fault {
	return &fault{status: fiber.StatusBadRequest, code: code, message: message}
}

// of sets the ID of the faulty request and returns f.
func (f *fault) of(id json.RawMessage) *fault {
	f.id = id
	return f
}

// sessionNotFound returns the fault for a request whose session this server does not have. The response depends only on
// the reason, so that it does not reveal other users' sessions.
func sessionNotFound(reason string) *fault {
	return &fault{status: fiber.StatusNotFound, code: codeServer, message: "Session not found", data: encode(map[string]string{"reason": reason})}
}

// Reasons for sessionNotFound.
const (
	reasonNotFound    = "not_found"
	reasonUnavailable = "unavailable"
)

// retryLater returns a fault with the time after which to try again.
func retryLater(status int, message string, after time.Duration) *fault {
	return &fault{status: status, code: codeServer, message: message, retryAfter: after}
}

func shuttingDown() *fault {
	return retryLater(fiber.StatusServiceUnavailable, errShutdown.Error(), 5*time.Second)
}

// refusedBySession turns an error of a session or of the set into a fault. full is the message for limits.ErrFull.
func refusedBySession(err error, full string) *fault {
	if twice, ok := errors.AsType[*duplicateError](err); ok {
		return badRequest(rpc.CodeInvalidRequest, twice.Error()).of(twice.ID)
	}
	switch {
	case errors.Is(err, errShutdown):
		return shuttingDown()
	case errors.Is(err, limits.ErrShare):
		return retryLater(fiber.StatusTooManyRequests, "you have too many sessions or listening streams open; close one or try again later (limits.sessions)", capRetry)
	case errors.Is(err, limits.ErrFull):
		return retryLater(fiber.StatusTooManyRequests, full, capRetry)
	case errors.Is(err, errTooManyCalls):
		return retryLater(fiber.StatusTooManyRequests, err.Error(), time.Second)
	}
	return sessionNotFound(reasonNotFound)
}

// denied turns an error of package access into a fault. Other errors are internal, and their text is not shown.
func (e *Endpoint) denied(err error) *fault {
	known, ok := errors.AsType[*core.Error](err)
	if !ok {
		e.log.Error("request failed", "error", err)
		return &fault{status: fiber.StatusInternalServerError, code: codeServer, message: "internal error"}
	}
	f := &fault{code: codeServer, message: known.Message, data: encode(map[string]any{"error": known.Code})}
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

func (f *fault) send(c *fiber.Ctx) error {
	f.setRetryAfter(c)
	return sendJSON(c, f.status, errorBody(f.id, &rpc.Error{Code: f.code, Message: f.message, Data: f.data}))
}

// setRetryAfter sets Retry-After, in whole seconds.
func (f *fault) setRetryAfter(c *fiber.Ctx) {
	if f.retryAfter > 0 {
		c.Set(fiber.HeaderRetryAfter, strconv.Itoa(int(math.Ceil(f.retryAfter.Seconds()))))
	}
}

func sendJSON(c *fiber.Ctx, status int, body []byte) error {
	c.Response().Header.SetContentType(fiber.MIMEApplicationJSON)
	return c.Status(status).Send(body)
}

// errorBody returns a JSON-RPC error response. A nil id is written as null; nil data is left out.
func errorBody(id json.RawMessage, failure *rpc.Error) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	body, err := rawjson.Encode(struct { // without HTML escapes, because messages are never embedded in a page
		Version string          `json:"jsonrpc"`
		Error   *rpc.Error      `json:"error"`
		ID      json.RawMessage `json:"id"`
	}{"2.0", failure, id})
	if err != nil { // a bundle's data was not valid JSON
		return errorBody(id, &rpc.Error{Code: failure.Code, Message: failure.Message})
	}
	return body
}

// plain writes the fault with an error body of the HTTP API, because the discovery routes do not use JSON-RPC.
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

const (
	codeCancelled        = -32800 // a call that its client cancelled; its POST still needs an answer
	codeResourceNotFound = -32002 // only in sessions; stateless requests get invalid params
)

func internalError() error {
	return &rpc.Error{Code: rpc.CodeInternalError, Message: "internal error"}
}

func invalidParams(format string, args ...any) error {
	return &rpc.Error{Code: rpc.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}

// errorOf returns the JSON-RPC error of a failed call.
func errorOf(err error) *rpc.Error {
	if known, ok := errors.AsType[*rpc.Error](err); ok {
		return known
	}
	return &rpc.Error{Code: rpc.CodeInvalidRequest, Message: err.Error()}
}

// statusOf returns the HTTP status of an error in revision 2026-07-28 (basic/transports). Errors about the request
// itself get a 4xx status.
func statusOf(code int) int {
	switch code {
	case rpc.CodeMethodNotFound:
		return fiber.StatusNotFound
	case rpc.CodeInvalidParams, mcp.CodeHeaderMismatch, mcp.CodeMissingRequiredClientCapabilities, mcp.CodeUnsupportedProtocolVersion:
		return fiber.StatusBadRequest
	}
	return fiber.StatusOK
}

// refusal turns an error of package tools into a JSON-RPC error. An app's own error passes unchanged. A name that the
// caller may not use is reported as unknown, as if it did not exist.
func (e *Endpoint) refusal(k *call, name string, err error) error {
	if failure, ok := errors.AsType[*rpc.Error](err); ok {
		return k.ofRevision(failure)
	}
	if k.context.Err() != nil {
		return &rpc.Error{Code: codeCancelled, Message: "the call was cancelled"}
	}
	known, ok := errors.AsType[*core.Error](err)
	if !ok {
		e.log.Error("call failed", "method", k.Method, "name", name, "error", err)
		return internalError()
	}
	switch known.Code {
	case core.CodeToolNotFound, core.CodeFeatureDisabled, core.CodeForbidden:
		return invalidParams("Unknown tool: %s", clip(name))
	case core.CodeBadRequest, core.CodeInvalidInput, core.CodeNotFound:
		return invalidParams("%s", known.Message)
	case core.CodeResourceNotFound:
		data, _ := json.Marshal(known.Details) // strings always encode
		return k.ofRevision(&rpc.Error{Code: codeResourceNotFound, Message: known.Message, Data: data})
	case core.CodeInternal:
		e.log.Error("call failed", "method", k.Method, "name", name, "error", err)
		return internalError()
	default:
		return &rpc.Error{Code: codeServer, Message: known.Message, Data: []byte(`{"error":` + strconv.Quote(string(known.Code)) + `}`)}
	}
}

// ofRevision returns an app's error with the code that the caller's revision uses.
func (k *call) ofRevision(err *rpc.Error) error {
	if k.session == nil && err.Code == codeResourceNotFound {
		return &rpc.Error{Code: rpc.CodeInvalidParams, Message: err.Message, Data: err.Data}
	}
	return err
}
