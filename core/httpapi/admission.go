package httpapi

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/authn"
	"github.com/ropewalk/ropewalk/core/httpapi/listener"
	"github.com/ropewalk/ropewalk/core/tracing"
)

// headerReceived decides how long the HTTP library waits for a body before any of it is read. A request whose
// credentials are refused gets its response before its body is read: the library reports a timeout, unless the body has
// already arrived, and writeUnreadable sends the response.
func (s *Server) headerReceived(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	if mayHaveProof(h) && s.access.BindsTokens() { // a proof covers the whole request and can be used only once
		return fasthttp.RequestConfig{ReadTimeout: s.options.Timeouts.Body}
	}
	if s.admitted(s.traced(h), h) {
		return fasthttp.RequestConfig{ReadTimeout: s.options.Timeouts.Body}
	}
	h.Del(fasthttp.HeaderExpect) // otherwise the library would ask for the body
	var kept fasthttp.RequestHeader
	h.CopyTo(&kept)
	s.refused.Store(h, &kept)
	return fasthttp.RequestConfig{ReadTimeout: 1}
}

// traced starts a span for a request with a body and returns a context within it. The request continues this span once
// the body has arrived.
func (s *Server) traced(h *fasthttp.RequestHeader) context.Context {
	path, _, _ := bytes.Cut(h.RequestURI(), []byte("?"))
	if s.options.Tracer == nil || h.ContentLength() == 0 || h.ContentLength() == -2 || !isTraced(path) {
		return s.root
	}
	method := string(h.Method())
	if !slices.Contains(s.router.Config().RequestMethods, method) { // clients may send any word as the method
		method = "HTTP"
	}
	span := s.options.Tracer.StartRequest(method, tracing.Wire{Parent: string(h.Peek(tracing.TraceParent)), State: string(h.Peek(tracing.TraceState))})
	s.spans.Store(h, span)
	return span.In(s.root)
}

// admitted reports whether to read the body of a request. It is true if there is no body, if the route requires no
// credentials, or if the credentials are not refused.
func (s *Server) admitted(ctx context.Context, h *fasthttp.RequestHeader) bool {
	n := h.ContentLength()
	return n == 0 || n == -2 || s.accepted(ctx, h) // -2: neither a length nor chunks
}

// accepted reports whether a request's route requires no credentials or its credentials are not refused.
func (s *Server) accepted(ctx context.Context, h *fasthttp.RequestHeader) bool {
	if s.access.Dev() {
		return true
	}
	_, err := s.sender(ctx, h)
	return core.CodeOf(err) != core.CodeUnauthenticated
}

// sender returns who sent a request. The result is the zero Identity if the route requires no credentials.
func (s *Server) sender(ctx context.Context, h *fasthttp.RequestHeader) (id core.Identity, err error) {
	path, _, _ := bytes.Cut(h.RequestURI(), []byte("?"))
	bearer := authn.BearerOf(h, s.access.BindsTokens())
	switch resource, mcp := strings.CutPrefix(string(path), "/mcp"); {
	case slices.Contains([]string{"/v1/auth/login", "/v1/auth/device", "/v1/auth/device/answer", "/v1/auth/backchannel-logout"}, string(path)):
		return id, nil
	case mcp && (resource == "" || resource[0] == '/'):
		return s.access.MCP(ctx, bearer, strings.TrimPrefix(resource, "/"))
	case bytes.HasPrefix(path, []byte("/v1/")):
		return s.access.API(ctx, bearer, string(h.Cookie(authn.SessionCookie)))
	}
	return id, nil
}

// mayHaveProof reports whether a request may contain a proof that its sender holds the key bound to its token.
func mayHaveProof(h *fasthttp.RequestHeader) bool {
	return len(h.Peek("DPoP")) > 0 || len(h.Peek("X-Forwarded-Client-Cert")) > 0
}

// answerWithoutBody sends the response to a request whose body did not arrive because headerReceived allowed no time
// for it. It returns false for any other request.
func (s *Server) answerWithoutBody(ctx *fasthttp.RequestCtx) bool {
	kept, refused := s.refused.Load(&ctx.Request.Header)
	if !refused {
		return false
	}
	kept.(*fasthttp.RequestHeader).CopyTo(&ctx.Request.Header) // the library has reset the request
	ctx.Response.Reset()
	s.router.Server().Handler(ctx)
	ctx.SetConnectionClose()
	listener.LingerOnClose(ctx.Conn())
	return true
}
