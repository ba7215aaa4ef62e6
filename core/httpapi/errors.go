package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/ropewalk/ropewalk/core"
)

const (
	internalMessage = "something went wrong inside the server; its log has the reason under this answer's X-Request-Id"
	retryAfter      = 5 * time.Second // for a 429 or 503 whose room named no time
)

// answer is the body of every error (spec part 7, contract part 1).
type answer struct {
	Error   core.Code `json:"error"`
	Message string    `json:"message,omitempty"`
	Details any       `json:"details,omitempty"`
}

// statusOf is the one map from an error code to its status.
func statusOf(code core.Code) int {
	switch code {
	case core.CodeBadRequest, core.CodeInvalidInput, core.CodeCredentialsRequired, core.CodeWorkspaceRequired, core.CodeNotConfigured:
		return fiber.StatusBadRequest
	case core.CodeUnauthenticated:
		return fiber.StatusUnauthorized
	case core.CodeForbidden, core.CodeProtected, core.CodeFeatureDisabled, core.CodeWorkspaceDenied:
		return fiber.StatusForbidden
	case core.CodeNotFound, core.CodeToolNotFound, core.CodeResourceNotFound:
		return fiber.StatusNotFound
	case core.CodeMethodNotAllowed:
		return fiber.StatusMethodNotAllowed
	case core.CodeAlreadyInstalled, core.CodeRunInProgress, core.CodeAlreadyAnswered:
		return fiber.StatusConflict
	case core.CodePayloadTooLarge:
		return fiber.StatusRequestEntityTooLarge
	case core.CodeUnsupportedMedia:
		return fiber.StatusUnsupportedMediaType
	case core.CodeRateLimited:
		return fiber.StatusTooManyRequests
	case core.CodeUnavailable, core.CodeModelNotConfigured, core.CodeProviderOverloaded:
		return fiber.StatusServiceUnavailable
	case core.CodeProviderAuth, core.CodeProviderError:
		return fiber.StatusBadGateway
	default: // the failed verbs of spec part 7, and what nobody named
		return fiber.StatusInternalServerError
	}
}

// fail writes err as an answer. What is not a core.Error is internal: logged, not shown.
func (s *Server) fail(ctx *fasthttp.RequestCtx, err error) {
	e, ok := errors.AsType[*core.Error](err)
	if !ok {
		e = fromFiber(err)
	}
	status := statusOf(e.Code)
	if status >= fiber.StatusInternalServerError {
		say := s.log.Warn
		if errors.Is(err, context.Canceled) { // its client has gone
			say = s.log.Debug
		}
		say("A request failed", "error", cause(err, e), "method", string(ctx.Method()), "path", string(ctx.Path()),
			"request_id", string(ctx.Response.Header.Peek(fiber.HeaderXRequestID)))
	}
	body := answer{Error: e.Code, Message: e.Message, Details: e.Details}
	if e.Code == core.CodeInternal {
		body = answer{Error: core.CodeInternal, Message: internalMessage}
	}
	passes := e.Code != core.CodeModelNotConfigured // which takes an operator, not time
	if status == fiber.StatusTooManyRequests || status == fiber.StatusServiceUnavailable && passes {
		wait := e.RetryAfter
		if wait <= 0 {
			wait = retryAfter
		}
		ctx.Response.Header.Set(fiber.HeaderRetryAfter, strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	}
	s.write(ctx, status, body)
}

// fromFiber names the errors of the router; everything else is internal.
func fromFiber(err error) *core.Error {
	f, ok := errors.AsType[*fiber.Error](err)
	if !ok {
		return core.Wrap(core.CodeInternal, err, internalMessage)
	}
	switch f.Code {
	case fiber.StatusNotFound:
		return core.Errorf(core.CodeNotFound, "there is nothing at this path")
	case fiber.StatusMethodNotAllowed:
		return core.Errorf(core.CodeMethodNotAllowed, "this path does not take this method; the Allow header names those it takes")
	default:
		return core.Wrap(core.CodeInternal, err, internalMessage)
	}
}

// cause is what the log should say: what the answer hides, with what it says where it adds to that.
func cause(err error, e *core.Error) string {
	hidden := errors.Unwrap(e)
	if hidden == nil || strings.Contains(err.Error(), hidden.Error()) {
		return err.Error()
	}
	return err.Error() + ": " + hidden.Error()
}

// write is the one writer of error bodies. A 401 has none (spec part 5).
func (s *Server) write(ctx *fasthttp.RequestCtx, status int, body answer) {
	ctx.Response.ResetBody()
	ctx.SetStatusCode(status)
	if status == fiber.StatusUnauthorized {
		return
	}
	encoded, err := plain(body)
	if err != nil {
		s.log.Error("The details of an error cannot be written as JSON", "code", string(body.Error), "error", err)
		encoded, _ = json.Marshal(answer{Error: body.Error, Message: body.Message}) // two strings always marshal
	}
	ctx.SetContentType(fiber.MIMEApplicationJSON)
	ctx.SetBody(encoded)
}

// plain is body as JSON, with < and > as they are: a message is for people, and no page holds it.
func plain(body answer) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(body)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// refuse answers a request that never reached a handler because it could not be read, and closes
// the connection: where the next request would start is not known.
func (s *Server) refuse(ctx *fasthttp.RequestCtx, err error) {
	s.dress(ctx)
	ctx.SetConnectionClose()
	lingerOn(ctx.Conn())
	status, body := fiber.StatusBadRequest, answer{Error: core.CodeBadRequest, Message: "the request is not well-formed HTTP/1.1"}
	var timeout net.Error
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		status = fiber.StatusRequestEntityTooLarge
		body = answer{Error: core.CodePayloadTooLarge, Message: "the body is too large; the limit is 1 MiB under /v1"}
	case errors.As(err, new(*fasthttp.ErrSmallBuffer)):
		status, body.Message = fiber.StatusRequestHeaderFieldsTooLarge, "the request line and headers are longer than 16 KiB"
	case errors.As(err, &timeout) && timeout.Timeout():
		status, body.Message = fiber.StatusRequestTimeout, "the request took too long to arrive"
	}
	s.log.Debug("A request was refused before it was read", "status", status, "error", err)
	s.write(ctx, status, body)
}
