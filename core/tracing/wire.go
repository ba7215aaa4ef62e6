package tracing

import (
	"bytes"
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/ropewalk/ropewalk/core/rawjson"
)

// The names of a trace context in HTTP headers, in _meta and in gRPC metadata.
const (
	TraceParent = "traceparent"
	TraceState  = "tracestate"
)

// Wire is a trace context in its transmitted form (W3C Trace Context). The zero value means none.
type Wire struct{ Parent, State string }

// Get implements propagation.TextMapCarrier.
func (w *Wire) Get(key string) string {
	switch key {
	case TraceParent:
		return w.Parent
	case TraceState:
		return w.State
	}
	return ""
}

// Set implements propagation.TextMapCarrier.
func (w *Wire) Set(key, value string) {
	switch key {
	case TraceParent:
		w.Parent = value
	case TraceState:
		w.State = value
	}
}

// Keys implements propagation.TextMapCarrier.
func (*Wire) Keys() []string { return []string{TraceParent, TraceState} }

// WireInMeta returns the trace context in a _meta (SEP-414). It is empty for a _meta that is not an object.
func WireInMeta(meta []byte) (w Wire) {
	if !bytes.Contains(meta, []byte(TraceParent)) {
		return w
	}
	members, _ := rawjson.ListOf(meta)
	return Wire{Parent: rawjson.Text(members.Get(TraceParent)), State: rawjson.Text(members.Get(TraceState))}
}

// WireOf returns the trace context to send with a request made in ctx.
func WireOf(ctx context.Context) Wire {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return Wire{}
	}
	return injected(ctx)
}

// injected is separate from WireOf, so that WireOf allocates nothing without a trace context.
func injected(ctx context.Context) (w Wire) {
	propagation.TraceContext{}.Inject(ctx, &w)
	return w
}

// received returns ctx with a received trace context, or ctx unchanged if w is empty or not valid.
func received(ctx context.Context, w Wire) context.Context {
	if w.Parent == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, &w)
}
