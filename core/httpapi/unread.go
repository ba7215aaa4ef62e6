package httpapi

import (
	"bytes"
	"context"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/authn"
	"github.com/ropewalk/ropewalk/core/webguard"
)

// countedResponse is the minimum size in bytes of a response that is counted.
const countedResponse = 256 << 10

// Requests for large responses are handled a few at a time, because reading and encoding a response takes several times
// its size in memory.
const (
	largeAtATime = 32
	largePerUser = 4
	largeWait    = 10 * time.Second
)

// beginLarge waits until a request for a large response may be handled. done must be called afterwards.
func (s *Server) beginLarge(ctx context.Context, user string) (done func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, largeWait)
	defer cancel()
	if s.large.Await(ctx, user) != nil {
		return nil, core.Errorf(core.CodeRateLimited, "too many large responses are being read; each user can read %d at a time", largePerUser).WithRetryAfter(largeWait)
	}
	return func() { s.large.Release(user) }, nil
}

// holdResponse counts a large response against its caller's share of memory until the client has read it. If the share
// is used up, it refuses the request. Without this limit, a client that never reads could fill the memory.
func (s *Server) holdResponse(ctx *fasthttp.RequestCtx) {
	own := bytes.HasPrefix(ctx.Path(), []byte("/v1/")) || bytes.HasPrefix(ctx.Path(), []byte("/mcp")) // all clients share the files of the console
	if !own || ctx.Response.IsBodyStream() || ctx.Hijacked() || ctx.IsHead() || len(ctx.Response.Body()) < countedResponse {
		return
	}
	body := ctx.Response.Body()
	release, err := s.options.Limits.HoldResponse(s.principal(ctx), len(body))
	if err != nil {
		ctx.Response.Header.Del(fasthttp.HeaderContentEncoding)
		ctx.Response.Header.Del(fasthttp.HeaderETag)
		s.fail(ctx, err)
		return
	}
	ctx.Response.SwapBody(nil) // otherwise the library would reuse the buffer for another response
	ctx.Response.SetBodyStream(&heldBody{*bytes.NewReader(body), release}, len(body))
}

// principal returns the user who sent a request, or the address of an unknown sender.
func (s *Server) principal(ctx *fasthttp.RequestCtx) string {
	if caller, known := authn.CallerOf(ctx); known {
		return caller.User.ID
	}
	if info := webguard.RequestOf(ctx); info != nil && info.User != "" {
		return info.User
	}
	return s.guard.ClientAddress(ctx)
}

// heldBody is the body of a response. It is counted until the library closes it, after writing it or failing to.
type heldBody struct {
	bytes.Reader
	release func()
}

func (b *heldBody) Close() error {
	b.release()
	return nil
}
