package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Span is a started span, or a client's trace context if nothing is recorded. The zero value is neither of these, and
// all its methods do nothing.
type Span struct {
	span   trace.Span
	tracer trace.Tracer // nil if tracing is off
}

// tracerKey is the key of the trace.Tracer of a context.
type tracerKey struct{}

// In returns ctx with the span, so that spans started with it are its children.
func (s Span) In(ctx context.Context) context.Context {
	if s.tracer != nil {
		ctx = context.WithValue(ctx, tracerKey{}, s.tracer)
	}
	if s.span != nil {
		ctx = trace.ContextWithSpan(ctx, s.span)
	}
	return ctx
}

// Of returns the span of ctx.
func Of(ctx context.Context) Span {
	span := trace.SpanFromContext(ctx)
	if !span.SpanContext().IsValid() {
		return Span{}
	}
	return Span{span, tracerOf(ctx)}
}

// Recording reports whether the span of ctx records anything.
func Recording(ctx context.Context) bool { return trace.SpanFromContext(ctx).IsRecording() }

// Recording reports whether the span records anything.
func (s Span) Recording() bool { return s.span != nil && s.span.IsRecording() }

// TraceID returns the id of the span's trace in hexadecimal, or "".
func (s Span) TraceID() string {
	if s.span == nil || !s.span.SpanContext().HasTraceID() {
		return ""
	}
	return s.span.SpanContext().TraceID().String()
}

// TraceID returns the id of the trace that ctx belongs to, or "".
func TraceID(ctx context.Context) string {
	if id := trace.SpanContextFromContext(ctx).TraceID(); id.IsValid() {
		return id.String()
	}
	return ""
}

// End ends the span. err, if not nil, is why the operation failed: its kind is recorded, its text is not.
func (s Span) End(err error) {
	if !s.Recording() {
		return
	}
	if err != nil {
		s.fail(kindOf(err))
	}
	s.span.End()
}

// fail marks the span as failed.
func (s Span) fail(kind string) {
	s.span.SetStatus(codes.Error, "")
	s.span.SetAttributes(attribute.String("error.type", kind))
}

// child starts a child of the span in ctx, which must be recording.
func child(ctx context.Context, kind trace.SpanKind, name string, attributes []attribute.KeyValue) (context.Context, Span) {
	tracer := tracerOf(ctx)
	if tracer == nil {
		return ctx, Span{}
	}
	ctx, span := tracer.Start(ctx, name, trace.WithSpanKind(kind))
	span.SetAttributes(attributes...) // passing them to Start would copy them twice
	return ctx, Span{span, tracer}
}

func tracerOf(ctx context.Context) trace.Tracer {
	tracer, _ := ctx.Value(tracerKey{}).(trace.Tracer)
	return tracer
}

// optional returns attributes plus those of pairs (alternating names and values) whose value is not empty.
func optional(attributes []attribute.KeyValue, pairs ...string) []attribute.KeyValue {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			attributes = append(attributes, attribute.String(pairs[i], pairs[i+1]))
		}
	}
	return attributes
}
