package httpapi

import (
	"bytes"
	"math/rand/v2"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/utils"
	"github.com/valyala/fasthttp"

	"github.com/ropewalk/ropewalk/core"
)

// front is what every request meets first, whatever its route: the headers that every answer has,
// the refusal of malformed requests, the answer to preflights, the refusal of new work while the
// server shuts down, and the net under a handler that panics.
func (s *Server) front(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		start := time.Now()
		s.dress(ctx)
		defer s.served(ctx, start)
		defer s.catch(ctx)
		if !s.receive(ctx) {
			return
		}
		switch {
		case s.options.Closed(ctx):
		case !knownMethod(ctx):
			ctx.Response.Header.Set(fiber.HeaderAllow, allowedMethods)
			s.fail(ctx, core.Errorf(core.CodeMethodNotAllowed, "the method is not one this server knows"))
		case ctx.IsOptions():
			ctx.SetStatusCode(fiber.StatusNoContent)
		case s.draining.Load():
			s.fail(ctx, core.Errorf(core.CodeUnavailable, "the server is shutting down"))
		default:
			next(ctx)
		}
		if s.draining.Load() {
			ctx.SetConnectionClose()
		}
	}
}

// dress sets the headers of contract part 1.
func (s *Server) dress(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	set(h, fiber.HeaderXContentTypeOptions, "nosniff")
	set(h, fiber.HeaderReferrerPolicy, "strict-origin-when-cross-origin")
	id := ctx.Request.Header.Peek(fiber.HeaderXRequestID)
	if !fitsLog(id) {
		var fresh [26]byte
		id = requestID(fresh[:0])
	}
	set(h, requestIDHeader, utils.UnsafeString(id))
	s.origins.cors(ctx)
}

// requestIDHeader is X-Request-ID in the spelling of the HTTP library.
const requestIDHeader = "X-Request-Id"

// set sets a header whose name is spelled as it is sent, which most of the work of setting one is about.
func set(h *fasthttp.ResponseHeader, name, value string) {
	h.SetCanonical(utils.UnsafeBytes(name), utils.UnsafeBytes(value)) // both are copied
}

// fitsLog reports whether a request's own id is fit for a log line and a header.
func fitsLog(id []byte) bool {
	return len(id) > 0 && len(id) <= 128 && !bytes.ContainsFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r)
	})
}

// requestID appends an id for a request without one. It tells log lines apart and guards nothing.
func requestID(to []byte) []byte {
	return strconv.AppendUint(strconv.AppendUint(to, rand.Uint64(), 36), rand.Uint64(), 36) //nolint:gosec // not a secret
}

func knownMethod(ctx *fasthttp.RequestCtx) bool {
	switch string(ctx.Method()) {
	case fiber.MethodGet, fiber.MethodHead, fiber.MethodPost, fiber.MethodPut, fiber.MethodPatch, fiber.MethodDelete, fiber.MethodOptions:
		return true
	}
	return false
}

// catch answers 500 when a handler panicked. The process goes on.
func (s *Server) catch(ctx *fasthttp.RequestCtx) {
	if p := recover(); p != nil {
		s.log.Error("A handler panicked", "panic", p, "request_id", string(ctx.Response.Header.Peek(fiber.HeaderXRequestID)),
			"method", string(ctx.Method()), "path", string(ctx.Path()), "stack", string(debug.Stack()))
		s.write(ctx, fiber.StatusInternalServerError, answer{Error: core.CodeInternal, Message: internalMessage})
	}
}

func (s *Server) served(ctx *fasthttp.RequestCtx, start time.Time) {
	if !s.log.IsDebug() {
		return
	}
	s.log.Debug("A request was answered", "method", string(ctx.Method()), "path", string(ctx.Path()),
		"status", ctx.Response.StatusCode(), "ms", time.Since(start).Milliseconds(),
		"request_id", string(ctx.Response.Header.Peek(fiber.HeaderXRequestID)))
}
