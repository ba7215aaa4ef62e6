package tracing

import (
	"context"
	"io"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// PluginCalls returns the options for a gRPC connection to a plugin. Calls made within a trace get spans, and
// the plugin gets the trace context in the metadata.
func PluginCalls(kind, adapter string) []grpc.DialOption {
	p := plugin{kind, adapter}
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(p.unary), grpc.WithChainStreamInterceptor(p.stream)}
}

type plugin struct{ kind, adapter string }

func (p plugin) unary(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, o ...grpc.CallOption) error {
	ctx, span := p.start(ctx, method)
	err := call(ctx, method, request, reply, conn, o...)
	span.endGRPC(err)
	return err
}

func (p plugin) stream(ctx context.Context, d *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
	ctx, span := p.start(ctx, method)
	s, err := open(ctx, d, conn, method, o...)
	if err != nil || !span.Recording() {
		span.endGRPC(err)
		return s, err
	}
	return &tracedStream{ClientStream: s, span: span}, nil
}

// start starts the span of a call and adds the trace context to the metadata.
func (p plugin) start(ctx context.Context, method string) (context.Context, Span) {
	var span Span
	if Recording(ctx) {
		full := strings.TrimPrefix(method, "/")
		ctx, span = child(ctx, trace.SpanKindClient, full, []attribute.KeyValue{
			attribute.String("rpc.system.name", "grpc"), attribute.String("rpc.method", full),
			attribute.String("ropewalk.plugin.kind", p.kind), attribute.String("ropewalk.plugin.name", p.adapter),
		})
	}
	if w := WireOf(ctx); w.Parent != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, TraceParent, w.Parent)
		if w.State != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, TraceState, w.State)
		}
	}
	return ctx, span
}

// endGRPC ends the span of a call with its status. A rejected token does not count as a failed call.
func (s Span) endGRPC(err error) {
	if !s.Recording() {
		return
	}
	code := status.Code(err)
	s.span.SetAttributes(attribute.String("rpc.response.status_code", codeName(code)))
	if code != codes.OK {
		s.fail(codeName(code))
	}
	s.span.End()
}

// codeName returns a gRPC code in the notation of the conventions, such as DEADLINE_EXCEEDED.
func codeName(c codes.Code) string {
	if c == codes.OK {
		return "OK"
	}
	var name strings.Builder
	for i, r := range c.String() {
		if i > 0 && r >= 'A' && r <= 'Z' {
			name.WriteByte('_')
		}
		name.WriteRune(r)
	}
	return strings.ToUpper(name.String())
}

// tracedStream ends its span when the stream ends.
type tracedStream struct {
	grpc.ClientStream
	span Span
	once sync.Once
}

// RecvMsg implements grpc.ClientStream.
func (s *tracedStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err != nil {
		s.once.Do(func() {
			if err == io.EOF { //nolint:errorlint // gRPC returns it unwrapped
				s.span.endGRPC(nil)
				return
			}
			s.span.endGRPC(err)
		})
	}
	return err
}
