package httpapi

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/utils"
	"github.com/valyala/fasthttp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/authn"
	"github.com/ropewalk/ropewalk/core/httpapi/intake"
	"github.com/ropewalk/ropewalk/core/httpapi/listener"
	"github.com/ropewalk/ropewalk/core/webguard"
)

// wrap returns the handler that all requests go through. It sets the common headers, refuses malformed requests,
// responds to preflights, refuses new requests during shutdown, and recovers from panics.
func (s *Server) wrap(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		start := time.Now()
		s.refused.Delete(&ctx.Request.Header)
		s.setCommonHeaders(ctx)
		info := s.beginInfo(ctx)
		defer s.endRequest(ctx, info, start)
		defer s.measureRequest(ctx, start)
		defer s.recoverPanic(ctx)
		done, ok := s.readRequest(ctx)
		if done != nil {
			webguard.SetBody(ctx, done)
			defer func() {
				if done := webguard.TakeBody(ctx); done != nil {
					done()
				}
			}()
		}
		if !ok {
			return
		}
		switch {
		case s.options.RespondIfDisabled(ctx):
		case !knownMethod(ctx):
			ctx.Request.Header.SetMethod(fiber.MethodTrace) // no route has this method, so the router lists the path's methods in Allow
			next(ctx)
		case ctx.IsOptions():
			ctx.SetStatusCode(fiber.StatusNoContent)
		case s.draining.Load():
			s.fail(ctx, core.Errorf(core.CodeUnavailable, "the server is shutting down"))
		default:
			next(ctx)
			s.recordRefusal(ctx)
			compress(ctx)
			s.holdResponse(ctx)
		}
		if s.leaving.Load() { // so that no proxy reuses this connection just as the server closes it
			ctx.SetConnectionClose()
		}
	}
}

// readRequest checks and reads a request. If ok is false, it has already written an error response. If done is not nil,
// it must be called when the request has been answered.
func (s *Server) readRequest(ctx *fasthttp.RequestCtx) (done func(), ok bool) {
	h := &ctx.Request.Header
	err := intake.CheckFraming(h)
	if err == nil && listener.EndedBare(ctx.Conn(), h.Method(), h.RequestURI(), h.Protocol()) {
		err = errors.New("the request line ends in a bare line feed")
	}
	if err == nil {
		err = intake.CheckHost(&ctx.Request)
	}
	own := s.largeBody(ctx)
	if err == nil && own.streamed {
		return nil, s.beginUpload(ctx, own.limit)
	}
	if err == nil && !s.admitted(webguard.RequestOf(ctx).In(s.root), h) {
		ctx.Request.ResetBody() // the body stays unread, so the connection is closed after the response
		ctx.SetConnectionClose()
		listener.LingerOnClose(ctx.Conn())
		return nil, true // the handler refuses it
	}
	chunked, fields := h.ContentLength() == -1, 0
	if chunked {
		fields = h.Len()
	}
	if err == nil {
		done, err = s.bodies.ReadBody(&ctx.Request, s.bodyLimit(ctx), func() intake.Client { return s.client(ctx) })
	}
	if err == nil && chunked && h.Len() != fields {
		// The library adds trailer fields to the headers, and accepts bare line feeds and folded lines in them.
		err = errors.New("the body ends with trailer fields")
	}
	if complete := listener.Complete(ctx.Conn(), chunked); err == nil && complete {
		return done, true
	} else if err == nil {
		err = io.ErrUnexpectedEOF
	}
	if busy, ok := errors.AsType[*core.Error](err); ok {
		ctx.SetConnectionClose()
		listener.LingerOnClose(ctx.Conn())
		s.fail(ctx, busy)
		return done, false
	}
	s.writeUnreadable(ctx, err)
	return done, false
}

// largeBody returns the action of a request whose body has its own limit, or else the zero action.
func (s *Server) largeBody(ctx *fasthttp.RequestCtx) action {
	if !ctx.IsPost() {
		return action{}
	}
	return s.largeBodies[string(ctx.URI().PathOriginal())]
}

// beginUpload leaves the body of an upload on the connection, so that the handler can stream it after checking the
// caller's rights. The connection is closed after the response, because the body of a refused upload is not read.
func (s *Server) beginUpload(ctx *fasthttp.RequestCtx, limit int) bool {
	ctx.SetConnectionClose()
	if ctx.Request.Header.ContentLength() > limit {
		s.writeUnreadable(ctx, fasthttp.ErrBodyTooLarge)
		return false
	}
	listener.LingerOnClose(ctx.Conn())
	return true
}

// bodyLimit returns the size limit of a request body, in bytes.
func (s *Server) bodyLimit(ctx *fasthttp.RequestCtx) int {
	if own := s.largeBody(ctx); own.limit > 0 {
		return own.limit
	}
	if bytes.HasPrefix(ctx.URI().PathOriginal(), []byte("/v1/")) {
		return s.options.MaxAPIBody
	}
	return s.options.MaxBody
}

// client identifies the sender of a request that has not been routed yet.
func (s *Server) client(ctx *fasthttp.RequestCtx) intake.Client {
	h := &ctx.Request.Header
	id, err := s.access.API(webguard.RequestOf(ctx).In(s.root), authn.Bearer(ctx), string(h.Cookie(authn.SessionCookie)))
	if err != nil {
		return intake.Client{Name: s.guard.ClientAddress(ctx), Anonymous: true}
	}
	return intake.Client{Name: id.User.ID}
}

// setCommonHeaders sets the headers that every response has.
func (s *Server) setCommonHeaders(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	set(h, fiber.HeaderXContentTypeOptions, "nosniff")
	set(h, fiber.HeaderReferrerPolicy, "strict-origin-when-cross-origin")
	id := ctx.Request.Header.Peek(fiber.HeaderXRequestID)
	if !validRequestID(id) {
		var fresh [26]byte
		id = appendRequestID(fresh[:0])
	}
	set(h, requestIDHeader, utils.UnsafeString(id))
	s.cors(ctx)
}

// requestIDHeader is X-Request-ID in the HTTP library's canonical form.
const requestIDHeader = "X-Request-Id"

// set sets a header whose name is already in canonical form. Normalizing the name would account for most of the cost.
func set(h *fasthttp.ResponseHeader, name, value string) {
	h.SetCanonical(utils.UnsafeBytes(name), utils.UnsafeBytes(value)) // both are copied
}

// validRequestID reports whether a client's request ID may be used in log lines and headers.
func validRequestID(id []byte) bool {
	return len(id) > 0 && len(id) <= 128 && !bytes.ContainsFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r)
	})
}

// appendRequestID appends a new request ID. IDs may be guessable, because they only correlate log lines.
func appendRequestID(to []byte) []byte {
	return strconv.AppendUint(strconv.AppendUint(to, rand.Uint64(), 36), rand.Uint64(), 36) //nolint:gosec // not a secret
}

func knownMethod(ctx *fasthttp.RequestCtx) bool {
	switch string(ctx.Method()) {
	case fiber.MethodGet, fiber.MethodHead, fiber.MethodPost, fiber.MethodPut, fiber.MethodPatch, fiber.MethodDelete, fiber.MethodOptions:
		return true
	}
	return false
}

// recoverPanic responds with 500 when a handler panics.
func (s *Server) recoverPanic(ctx *fasthttp.RequestCtx) {
	if p := recover(); p != nil {
		s.log.Error("handler panicked", "panic", p, "request_id", string(ctx.Response.Header.Peek(fiber.HeaderXRequestID)),
			"method", string(ctx.Method()), "path", string(ctx.Path()), "stack", string(debug.Stack()))
		s.write(ctx, fiber.StatusInternalServerError, errorBody{Error: core.CodeInternal, Message: internalMessage})
	}
}

func (s *Server) measureRequest(ctx *fasthttp.RequestCtx, start time.Time) {
	s.options.Metrics.Request(string(ctx.Method()), routeOf(ctx), ctx.Response.StatusCode(), time.Since(start))
}
