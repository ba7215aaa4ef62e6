package link

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/headerparam"
	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tracing"
)

// Request is one request to an app.
type Request struct {
	Method string
	Target string                 // the tool or prompt that the request refers to, for its span; may be ""
	Params json.RawMessage        // one JSON object; may be empty
	Notify func(rpc.Notification) // nil for a caller that does not take notifications
	Sender string                 // the user who made the request, because users take turns; "" for the server itself
	Caller Caller                 // the call that this request serves; nil for the server's own requests

	// Capabilities are the capabilities of the caller's client. On a StatelessVersion connection, each request carries
	// them. Params that already have them are not changed. May be nil.
	Capabilities json.RawMessage

	// Mirrors are the arguments of a tools/call that a remote server with StatelessVersion also reads from headers.
	Mirrors []core.Mirror
}

// Caller is the call that a request serves. Before StatelessVersion, an app's question does not identify the request
// that it belongs to, so it may be for the caller of any pending request.
type Caller interface {
	// Session is the session of the caller's client; "" if there is none.
	Session() string
	// Context is done when the call ends.
	Context() context.Context
	// Hold stops the call's clock while its client answers a question, until release is called.
	Hold() (release func())
	// Answer answers a question that belongs to this call, or to another call of the same client.
	Answer(ctx context.Context, q rpc.Question, callers []Caller) (json.RawMessage, error)
}

// The members that a StatelessVersion request has in params._meta.
const (
	reserved         = "io.modelcontextprotocol/"
	metaVersion      = reserved + "protocolVersion"
	metaClient       = reserved + "clientInfo"
	metaCapabilities = reserved + "clientCapabilities"
	metaLogLevel     = reserved + "logLevel"
)

// outgoing checks r and prepares it for sending. On a stateless connection it adds the revision and the client
// to params._meta; on others it removes those members. It adds the trace context.
func (l *Link) outgoing(r Request, trace tracing.Wire) (rpc.Request, error) {
	out, at, err := rpc.ReadRequest(r.Method, r.Params)
	if err == nil && trace.Parent != "" {
		out, at, err = withoutTrace(out, at)
	}
	if err != nil {
		return out, err
	}
	meta := at.In(out.Params)
	switch {
	case l.info.Stateless:
		if version, err := findIn(meta, metaVersion); err != nil || version.Empty() {
			params, err := l.withClientMeta(out.Params, meta, r.Capabilities)
			if err != nil {
				return out, fmt.Errorf("%w: %w", ErrParams, err)
			}
			if out, at, err = rpc.ReadRequest(r.Method, params); err != nil {
				return out, err
			}
		}
		out.Header = headerparam.Header(r.Mirrors, r.Params)
		if strings.HasPrefix(r.Method, "tasks/") { // the SDK does not know these methods
			out.Header = http.Header{"Mcp-Name": {r.Target}}
		}
	case bytes.Contains(meta, []byte(reserved)) || bytes.IndexByte(meta, '\\') >= 0: // a name may contain escapes
		plain, err := rawjson.Without(meta, metaVersion, metaClient, metaCapabilities, metaLogLevel)
		if err != nil {
			return out, fmt.Errorf("%w: %w", ErrParams, err)
		}
		if out, at, err = rpc.ReadRequest(r.Method, rawjson.Replace(out.Params, at, plain)); err != nil {
			return out, err
		}
	}
	if trace.Parent != "" {
		out.AddMeta(at, traceMembers(trace))
	}
	return out, nil
}

// findIn is like rawjson.Find, but accepts a nil object.
func findIn(object []byte, name string) (rawjson.Span, error) {
	if object == nil {
		return rawjson.Span{}, nil
	}
	return rawjson.Find(object, name)
}

// withClientMeta returns params with the members that a stateless request must have in _meta. meta is the
// current _meta, or nil.
func (l *Link) withClientMeta(params, meta []byte, capabilities json.RawMessage) ([]byte, error) {
	if len(capabilities) == 0 {
		capabilities = json.RawMessage("{}")
	}
	client, _ := json.Marshal(map[string]string{"name": "ropewalk", "version": l.o.Version}) // marshaling strings cannot fail
	if meta == nil {
		meta = []byte("{}")
	}
	completed, err := rawjson.Set(meta,
		rawjson.Member{Name: metaVersion, Value: json.RawMessage(`"` + StatelessVersion + `"`)},
		rawjson.Member{Name: metaClient, Value: client},
		rawjson.Member{Name: metaCapabilities, Value: capabilities})
	if err != nil {
		return nil, err
	}
	if len(params) == 0 {
		params = []byte("{}")
	}
	return rawjson.Set(params, rawjson.Member{Name: "_meta", Value: completed})
}

// startSpan starts the span for a request to the app. The server's own requests are not part of a trace.
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

// withoutTrace removes the trace context from a request's _meta. It is the client's context, and the app gets the
// context of this server's span instead. at is the position of params._meta.
func withoutTrace(r rpc.Request, at rawjson.Span) (rpc.Request, rawjson.Span, error) {
	meta := at.In(r.Params)
	if !bytes.Contains(meta, []byte("trace")) && bytes.IndexByte(meta, '\\') < 0 { // a name may contain escapes
		return r, at, nil
	}
	without, err := rawjson.Without(meta, tracing.TraceParent, tracing.TraceState)
	if err != nil {
		return r, at, err
	}
	return rpc.ReadRequest(r.Method, rawjson.Replace(r.Params, at, without))
}

// traceMembers returns a trace context as members of _meta (SEP-414).
func traceMembers(wire tracing.Wire) []byte {
	members := make([]byte, 0, len(`"":""`)+len(tracing.TraceParent)+len(wire.Parent)+len(`,"":""`)+len(tracing.TraceState)+len(wire.State))
	members = append(append(members, `"`+tracing.TraceParent+`":"`...), wire.Parent...) // only digits and hyphens
	members = append(members, '"')
	if wire.State != "" {
		members = append(append(members, `,"`+tracing.TraceState+`":`...), rawjson.Quote(wire.State)...)
	}
	return members
}
