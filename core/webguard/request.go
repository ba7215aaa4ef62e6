package webguard

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/tracing"
)

// RequestInfo is what is known of one request. A nil *RequestInfo is that of a request about which nothing is noted; all
// methods may be called on it.
type RequestInfo struct {
	Route     string // the pattern of the path; "" when none matched
	User      string // "" for a sender that is not known
	Workspace string
	Tool      string // the tool that was called; "" for none
	Span      tracing.Span

	// Origin is what audit records say of the request; nil when there are none.
	Origin *core.Origin

	// TokenRequest is what an identity provider gets of the request; nil when none wants to.
	TokenRequest *core.TokenRequest
}

type requestKey struct{}

// BeginRequest notes things about a request from now on.
func BeginRequest(ctx *fasthttp.RequestCtx, span tracing.Span) *RequestInfo {
	i := &RequestInfo{Span: span}
	ctx.SetUserValue(requestKey{}, i)
	return i
}

// RequestOf returns what is known of a request, nil when nothing is noted.
func RequestOf(ctx *fasthttp.RequestCtx) *RequestInfo {
	i, _ := ctx.UserValue(requestKey{}).(*RequestInfo)
	return i
}

// In returns ctx within the trace of the request, and with its Origin and TokenRequest.
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

// BindsTokens reports whether an identity provider gets the request with its token.
func (i *RequestInfo) BindsTokens() bool { return i != nil && i.TokenRequest != nil }

// HasProof reports whether an identity provider gets the request, and the request may prove that its sender holds the
// key of the token. The proof is good once.
func (i *RequestInfo) HasProof() bool { return i != nil && i.TokenRequest.HasProof() }

// SetRoute notes the pattern that the path of the request matched.
func (i *RequestInfo) SetRoute(route string) {
	if i != nil {
		i.Route = route
	}
}

// SetCaller notes who sent the request.
func (i *RequestInfo) SetCaller(c core.Caller) {
	if i != nil {
		i.User, i.Workspace = c.User.ID, c.Workspace.ID
	}
}

// SetTool notes the tool that the request calls.
func (i *RequestInfo) SetTool(name string) {
	if i != nil {
		i.Tool = name
	}
}

// TraceID returns the id of the trace of the request, "" for none.
func (i *RequestInfo) TraceID() string {
	if i == nil {
		return ""
	}
	return i.Span.TraceID()
}
