package link

import (
	"bytes"
	"context"

	"github.com/ropewalk/ropewalk/core/link/framing"
	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/tracing"
)

// startSpan starts the span of a request to the app. Requests of the server itself belong to no trace.
func (l *Link) startSpan(ctx context.Context, r *Request) (context.Context, tracing.Span) {
	if !tracing.Recording(ctx) {
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

// withoutTrace returns a request without the trace context that is in its _meta: that is the parent of this
// server's spans. at is where params._meta is.
func withoutTrace(r framing.Request, at rawjson.Span) (framing.Request, rawjson.Span, error) {
	meta := at.In(r.Params)
	if !bytes.Contains(meta, []byte("trace")) && bytes.IndexByte(meta, '\\') < 0 { // a name may be written with escapes
		return r, at, nil
	}
	without, err := rawjson.Without(meta, tracing.TraceParent, tracing.TraceState)
	if err != nil {
		return r, at, err
	}
	return framing.ReadRequest(r.Method, rawjson.Replace(r.Params, at, without))
}

// traceMembers is a trace context as members of _meta (SEP-414).
func traceMembers(wire tracing.Wire) []byte {
	members := make([]byte, 0, len(`"":""`)+len(tracing.TraceParent)+len(wire.Parent)+len(`,"":""`)+len(tracing.TraceState)+len(wire.State))
	members = append(append(members, `"`+tracing.TraceParent+`":"`...), wire.Parent...) // digits and hyphens
	members = append(members, '"')
	if wire.State != "" {
		members = append(append(members, `,"`+tracing.TraceState+`":`...), rawjson.Quote(wire.State)...)
	}
	return members
}
