package webguard

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/tracing"
)

// RequestInfo is what is known about one request. All methods may be called on a nil *RequestInfo, which
// stands for a request that nothing is recorded about.
type RequestInfo struct {
	Route     string // the pattern of the path; "" if none matched
	User      string // "" if the sender is unknown
	Workspace string
	Tool      string // the tool that was called; "" for none
	Span      tracing.Span

	// Origin describes the request for audit records; nil if there are none.
	Origin *core.Origin

	// TokenRequest is the request as identity providers see it; nil if none needs it.
	TokenRequest *core.TokenRequest
}

type requestKey struct{}

// BeginRequest starts recording information about a request.
func BeginRequest(ctx *fasthttp.RequestCtx, span tracing.Span) *RequestInfo {
	i := &RequestInfo{Span: span}
	ctx.SetUserValue(requestKey{}, i)
	return i
}

// RequestOf returns the information recorded about a request, or nil if nothing is recorded.
func RequestOf(ctx *fasthttp.RequestCtx) *RequestInfo {
	i, _ := ctx.UserValue(requestKey{}).(*RequestInfo)
	return i
}

type bodyKey struct{}

// SetBody sets the function that releases the memory counted for a request's body. A caller that gets it from TakeBody
// must call it exactly once.
func SetBody(ctx *fasthttp.RequestCtx, release func()) { ctx.SetUserValue(bodyKey{}, release) }

// TakeBody returns the function that SetBody set, for a caller that may keep parts of the body for longer than the
// request takes. It returns nil if nothing is counted, or if the function was already taken.
func TakeBody(ctx *fasthttp.RequestCtx) (release func()) {
	release, _ = ctx.UserValue(bodyKey{}).(func())
	ctx.RemoveUserValue(bodyKey{})
	return release
}

// In returns ctx with the request's span, Origin and TokenRequest.
func (i *RequestInfo) In(ctx context.Context) context.Context {
	if i == nil {
		return ctx
	}
	if i.Origin != nil {
		ctx = core.WithOrigin(ctx, i.Origin)
	}
	if i.TokenRequest != nil {
		ctx = core.WithTokenRequest(ctx, i.TokenRequest)
	}
	return i.Span.In(ctx)
}

// BindsTokens reports whether identity providers see the request together with its token.
func (i *RequestInfo) BindsTokens() bool { return i != nil && i.TokenRequest != nil }

// HasProof reports whether identity providers see the request, and the request may prove that its sender holds the
// token's key. A proof is valid only once.
func (i *RequestInfo) HasProof() bool { return i != nil && i.TokenRequest.HasProof() }

// SetRoute records the pattern that the path of the request matched.
func (i *RequestInfo) SetRoute(route string) {
	if i != nil {
		i.Route = route
	}
}

// SetCaller records who sent the request.
func (i *RequestInfo) SetCaller(c core.Caller) {
	if i != nil {
		i.User, i.Workspace = c.User.ID, c.Workspace.ID
	}
}

// SetTool records the tool that the request calls.
func (i *RequestInfo) SetTool(name string) {
	if i != nil {
		i.Tool = name
	}
}

// TraceID returns the id of the request's trace, or "" if there is none.
func (i *RequestInfo) TraceID() string {
	if i == nil {
		return ""
	}
	return i.Span.TraceID()
}
