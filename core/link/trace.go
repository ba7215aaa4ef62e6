package link

import (
	"bytes"
	"context"
	"strconv"

	"github.com/ropewalk/ropewalk/core/link/framing"
	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/tracing"
)

// startSpan starts the span of a request to the app. Requests of the server itself belong to no trace.
func (l *Link) startSpan(ctx context.Context, r *Request) (context.Context, tracing.Span) {
	if !tracing.Of(ctx).Recording() {
		return ctx, tracing.Span{}
	}
	transport := tracing.TCP
	if _, ok := l.out.(*stdioConn); ok {
		transport = tracing.Pipe
	}
	return tracing.StartMCPClient(ctx, tracing.MCP{
		Method: r.Method, Target: r.Target, Revision: l.info.ProtocolVersion, Transport: transport, App: l.o.Name,
	})
}

// withTrace returns a request with a trace context in its _meta (SEP-414), instead of the one that is there:
// that is the parent of this server's spans. at is where params._meta is.
func withTrace(r framing.Request, at rawjson.Span, wire tracing.Wire) (framing.Request, rawjson.Span, error) {
	meta := at.In(r.Params)
	if bytes.Contains(meta, []byte("trace")) || bytes.IndexByte(meta, '\\') >= 0 { // a name may be written with escapes
		without, err := rawjson.Without(meta, tracing.TraceParent, tracing.TraceState)
		if err == nil {
			r, at, err = framing.ReadRequest(r.Method, rawjson.Replace(r.Params, at, without))
		}
		if err != nil {
			return r, at, err
		}
	}
	members := strconv.AppendQuote([]byte(`"`+tracing.TraceParent+`":`), wire.Parent)
	if wire.State != "" {
		members = append(append(members, `,"`+tracing.TraceState+`":`...), rawjson.Quote(wire.State)...)
	}
	r, at = r.WithMeta(at, members)
	return r, at, nil
}
