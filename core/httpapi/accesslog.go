package httpapi

import (
	"bytes"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/utils"
	"github.com/valyala/fasthttp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/appapi"
	"github.com/ropewalk/ropewalk/core/httpapi/authn"
	"github.com/ropewalk/ropewalk/core/tracing"
	"github.com/ropewalk/ropewalk/core/webguard"
)

// beginInfo starts the trace of a request and returns the record of what is found out about it. It returns nil if no
// log, trace, audit or identity provider needs the record.
func (s *Server) beginInfo(ctx *fasthttp.RequestCtx) *webguard.RequestInfo {
	var span tracing.Span
	h := &ctx.Request.Header
	parent := h.Peek(tracing.TraceParent)
	if begun, ok := s.spans.LoadAndDelete(h); ok {
		span, _ = begun.(tracing.Span)
	} else if (s.options.Tracer != nil || len(parent) > 0) && isTraced(ctx.Path()) {
		span = s.options.Tracer.StartRequest(methodOf(ctx), tracing.Wire{Parent: string(parent), State: string(h.Peek(tracing.TraceState))})
	} else if !s.logsRequests() && !s.access.BindsTokens() && s.options.Audit == nil {
		return nil
	}
	info := webguard.BeginRequest(ctx, span)
	if s.options.Audit != nil {
		info.Origin = &core.Origin{RequestID: string(ctx.Response.Header.Peek(requestIDHeader)), Address: s.guard.ClientAddress(ctx)}
	}
	if s.access.BindsTokens() {
		info.TokenRequest = &core.TokenRequest{
			Method: string(ctx.Method()), URL: s.guard.Address(ctx) + string(ctx.URI().PathOriginal()),
			DPoP: strings.Join(texts(h.PeekAll("DPoP")), ","), ClientCertificate: s.guard.ClientCertificate(ctx),
		}
	}
	return info
}

// logsRequests reports whether requests are logged: in the access log, or at level debug.
func (s *Server) logsRequests() bool { return s.accessLog.Load() || s.log.IsDebug() }

// texts copies the values of a header. Its callers decide what to do with more than one value.
func texts(values [][]byte) []string {
	all := make([]string, len(values))
	for i, value := range values {
		all[i] = string(value)
	}
	return all
}

// isTraced reports whether requests for a path are traced. Probes and requests for the console's files are not.
func isTraced(path []byte) bool {
	switch string(path) {
	case "/v1/health", "/v1/bundles/health", "/v1/metrics":
		return false
	}
	return bytes.HasPrefix(path, []byte("/v1/")) || bytes.HasPrefix(path, []byte("/mcp"))
}

// methodOf returns the method as it appears in spans. Clients may send any word as the method, so unknown ones become
// HTTP.
func methodOf(ctx *fasthttp.RequestCtx) string {
	if !knownMethod(ctx) {
		return "HTTP"
	}
	return string(ctx.Method())
}

// endRequest logs a request once it has its response, and ends its span.
func (s *Server) endRequest(ctx *fasthttp.RequestCtx, info *webguard.RequestInfo, start time.Time) {
	if info == nil || !info.Span.Recording() && !s.logsRequests() {
		return
	}
	if caller, known := authn.CallerOf(ctx); known {
		info.SetCaller(caller)
	}
	if tool, known := appapi.ToolOf(ctx); known {
		info.SetTool(tool)
	}
	if info.Span.Recording() {
		info.Span.EndRequest(tracing.Request{
			Method: methodOf(ctx), Route: info.Route, Scheme: utils.CopyString(s.guard.Scheme(ctx)), Status: ctx.Response.StatusCode(), Workspace: info.Workspace,
		})
	}
	s.logRequest(ctx, info, time.Since(start))
}

func (s *Server) logRequest(ctx *fasthttp.RequestCtx, info *webguard.RequestInfo, took time.Duration) {
	log := s.log.Debug
	switch {
	case s.accessLog.Load():
		log = s.log.Info
	case !s.log.IsDebug():
		return
	}
	args := []any{
		"method", string(ctx.Method()), "path", string(ctx.Path()), "status", ctx.Response.StatusCode(),
		"duration", took.Round(time.Microsecond).String(), "bytes", bodySize(&ctx.Response),
		"request_id", string(ctx.Response.Header.Peek(requestIDHeader)), "address", s.guard.ClientAddress(ctx),
	}
	for _, field := range []struct{ name, value string }{
		{"route", info.Route}, {"user", info.User}, {"workspace", info.Workspace}, {"tool", info.Tool}, {"trace_id", info.TraceID()},
	} {
		if field.value != "" {
			args = append(args, field.name, field.value)
		}
	}
	log("request completed", args...)
}

// noteRoute records which route a request matched.
func noteRoute(c *fiber.Ctx) {
	if info := webguard.RequestOf(c.Context()); info != nil {
		info.SetRoute(c.Route().Path)
	}
}

// bodySize returns the size of a response body in bytes, or 0 for a stream of unknown size.
func bodySize(r *fasthttp.Response) int {
	if r.IsBodyStream() {
		return max(0, r.Header.ContentLength())
	}
	return len(r.Body())
}
