package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/httpio"
	"github.com/ropewalk/ropewalk/core/httpapi/listener"
	"github.com/ropewalk/ropewalk/core/rawjson"
)

const (
	internalMessage = "internal error; to find the reason, search the server log for this response's X-Request-Id"
	retryAfter      = 5 * time.Second // for a 429 or 503 whose error does not set one
)

// errorBody is the body of every error response.
type errorBody struct {
	Error   core.Code `json:"error"`
	Message string    `json:"message,omitempty"`
	Details any       `json:"details,omitempty"`
}

// statusOf is the only mapping from error codes to HTTP statuses.
func statusOf(code core.Code) int {
	switch code {
	case core.CodeBadRequest, core.CodeInvalidInput, core.CodeCredentialsRequired, core.CodePermissionsRequired, core.CodeWorkspaceRequired, core.CodeNotConfigured:
		return fiber.StatusBadRequest
	case core.CodeUnauthenticated:
		return fiber.StatusUnauthorized
	case core.CodeForbidden, core.CodeProtected, core.CodeToolHeld, core.CodeApprovalRefused, core.CodeFeatureDisabled, core.CodeWorkspaceDenied:
		return fiber.StatusForbidden
	case core.CodeNotFound, core.CodeToolNotFound, core.CodeResourceNotFound:
		return fiber.StatusNotFound
	case core.CodeMethodNotAllowed:
		return fiber.StatusMethodNotAllowed
	case core.CodeNotAcceptable:
		return fiber.StatusNotAcceptable
	case core.CodeAlreadyInstalled, core.CodeRunInProgress, core.CodeConflict, core.CodeAlreadyAnswered, core.CodeApprovalPending, core.CodeLoginNeeded, core.CodeLimitReached:
		return fiber.StatusConflict
	case core.CodePayloadTooLarge:
		return fiber.StatusRequestEntityTooLarge
	case core.CodeHeadersTooLarge:
		return fiber.StatusRequestHeaderFieldsTooLarge
	case core.CodeUnsupportedMedia:
		return fiber.StatusUnsupportedMediaType
	case core.CodeRateLimited:
		return fiber.StatusTooManyRequests
	case core.CodeUnavailable, core.CodeModelNotConfigured, core.CodeProviderOverloaded:
		return fiber.StatusServiceUnavailable
	case core.CodeProviderAuth, core.CodeProviderError:
		return fiber.StatusBadGateway
	default: // failed operations on apps, and internal errors
		return fiber.StatusInternalServerError
	}
}

// fail writes err as the response. Errors other than core.Error are logged and not shown.
func (s *Server) fail(ctx *fasthttp.RequestCtx, err error) {
	e := coreError(err)
	status := statusOf(e.Code)
	if status >= fiber.StatusInternalServerError {
		log := s.log.Warn
		if errors.Is(err, context.Canceled) { // the client disconnected
			log = s.log.Debug
		}
		log("request failed", "error", httpio.Cause(err, e), "method", string(ctx.Method()), "path", string(ctx.Path()),
			"request_id", string(ctx.Response.Header.Peek(fiber.HeaderXRequestID)))
	}
	body := errorBody{Error: e.Code, Message: e.Message, Details: e.Details}
	if e.Code == core.CodeInternal {
		body = errorBody{Error: core.CodeInternal, Message: internalMessage}
	}
	temporary := e.Code != core.CodeModelNotConfigured // until an operator configures a model, retrying is pointless
	if status == fiber.StatusTooManyRequests || status == fiber.StatusServiceUnavailable && temporary {
		wait := e.RetryAfter
		if wait <= 0 {
			wait = retryAfter
		}
		ctx.Response.Header.Set(fiber.HeaderRetryAfter, strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	}
	s.write(ctx, status, body)
}

// coreError returns the core.Error in err's chain, or the core.Error that err translates to.
func coreError(err error) *core.Error {
	if e, ok := errors.AsType[*core.Error](err); ok {
		return e
	}
	return fromFiber(err)
}

// fromFiber translates the router's errors. All other errors are internal.
func fromFiber(err error) *core.Error {
	f, ok := errors.AsType[*fiber.Error](err)
	if !ok {
		return core.Wrap(core.CodeInternal, err, internalMessage)
	}
	switch f.Code {
	case fiber.StatusNotFound:
		return core.Errorf(core.CodeNotFound, "not found")
	case fiber.StatusMethodNotAllowed:
		return core.Errorf(core.CodeMethodNotAllowed, "method not allowed; the Allow header lists the allowed methods")
	default:
		return core.Wrap(core.CodeInternal, err, internalMessage)
	}
}

// write writes an error response. All error responses go through it. A 401 has no body.
func (s *Server) write(ctx *fasthttp.RequestCtx, status int, body errorBody) {
	ctx.Response.ResetBody()
	ctx.SetStatusCode(status)
	if status == fiber.StatusUnauthorized {
		return
	}
	encoded, err := rawjson.Encode(body) // messages are for humans and are never embedded in a page
	if err != nil {
		s.log.Error("the details of an error cannot be encoded as JSON", "code", string(body.Error), "error", err)
		encoded, _ = json.Marshal(errorBody{Error: body.Error, Message: body.Message}) // two strings always encode
	}
	ctx.SetContentType(fiber.MIMEApplicationJSON)
	ctx.SetBody(encoded)
}

// writeUnreadable responds to a request that could not be read. It closes the connection, because it is not known where
// the next request starts.
func (s *Server) writeUnreadable(ctx *fasthttp.RequestCtx, err error) {
	var timeout net.Error
	late := errors.As(err, &timeout) && timeout.Timeout()
	if late && s.answerWithoutBody(ctx) {
		return
	}
	s.setCommonHeaders(ctx)
	ctx.SetConnectionClose()
	listener.LingerOnClose(ctx.Conn())
	status, body := fiber.StatusBadRequest, errorBody{Error: core.CodeBadRequest, Message: "malformed HTTP request"}
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		status = fiber.StatusRequestEntityTooLarge
		body = errorBody{Error: core.CodePayloadTooLarge, Message: fmt.Sprintf("the body is too large: the limit is %d bytes", s.bodyLimit(ctx))}
	case errors.As(err, new(*fasthttp.ErrSmallBuffer)):
		status = fiber.StatusRequestHeaderFieldsTooLarge
		body = errorBody{Error: core.CodeHeadersTooLarge, Message: fmt.Sprintf("the request line and headers are longer than %d bytes", maxHeaders)}
	case late:
		status, body.Message = fiber.StatusRequestTimeout, "the request took too long to arrive"
	}
	s.log.Debug("request rejected before it was read", "status", status, "error", err)
	s.write(ctx, status, body)
}
