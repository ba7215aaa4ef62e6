package requestinfo

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/tracing"
)

// Info is what is known of one request. A nil *Info is that of a request about which nothing is noted; all
// methods may be called on it.
type Info struct {
	Route     string // the pattern of the path; "" when none matched
	User      string // "" for a sender that is not known
	Workspace string
	Tool      string // the tool that was called; "" for none
	Span      tracing.Span

	// TokenRequest is what an identity provider gets of the request; nil when none wants to.
	TokenRequest *core.TokenRequest
}

type key struct{}

// Begin notes things about a request from now on.
func Begin(ctx *fasthttp.RequestCtx, span tracing.Span) *Info {
	i := &Info{Span: span}
	ctx.SetUserValue(key{}, i)
	return i
}

// Of returns what is known of a request, nil when nothing is noted.
func Of(ctx *fasthttp.RequestCtx) *Info {
	i, _ := ctx.UserValue(key{}).(*Info)
	return i
}

// In returns ctx within the trace of the request, and with its TokenRequest.
func (i *Info) In(ctx context.Context) context.Context {
	if i == nil {
		return ctx
	}
	if i.TokenRequest != nil {
		ctx = core.WithTokenRequest(ctx, i.TokenRequest)
	}
	return i.Span.In(ctx)
}

// BindsTokens reports whether an identity provider gets the request with its token.
func (i *Info) BindsTokens() bool { return i != nil && i.TokenRequest != nil }

// HasProof reports whether an identity provider gets the request, and the request may prove that its sender holds the
// key of the token. The proof is good once.
func (i *Info) HasProof() bool { return i != nil && i.TokenRequest.HasProof() }

// SetRoute notes the pattern that the path of the request matched.
func (i *Info) SetRoute(route string) {
	if i != nil {
		i.Route = route
	}
}

// SetCaller notes who sent the request.
func (i *Info) SetCaller(c core.Caller) {
	if i != nil {
		i.User, i.Workspace = c.User.ID, c.Workspace.ID
	}
}

// SetTool notes the tool that the request calls.
func (i *Info) SetTool(name string) {
	if i != nil {
		i.Tool = name
	}
}

// TraceID returns the id of the trace of the request, "" for none.
func (i *Info) TraceID() string {
	if i == nil {
		return ""
	}
	return i.Span.TraceID()
}
