package tracing

import (
	"context"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// StartRequest starts the span of an HTTP request. from is the trace context that the client sent. If there is no
// tracer, the span records nothing but carries the client's trace context.
func (t *Tracer) StartRequest(method string, from Wire) Span {
	if t == nil {
		if from.Parent == "" {
			return Span{}
		}
		return Of(received(context.Background(), from))
	}
	_, span := t.tracer.Start(received(context.Background(), from), method, trace.WithSpanKind(trace.SpanKindServer))
	return Span{span, t.tracer}
}

// Request describes an HTTP request after it was handled.
type Request struct {
	Method    string
	Route     string // the pattern of its path; "" if none matched
	Scheme    string
	Status    int
	Workspace string // may be ""
}

// EndRequest ends the span of an HTTP request.
func (s Span) EndRequest(r Request) {
	if !s.Recording() {
		return
	}
	attributes := make([]attribute.KeyValue, 0, 6)
	attributes = append(attributes, attribute.Int("http.response.status_code", r.Status))
	attributes = optional(attributes, "http.request.method", r.Method, "http.route", r.Route, "url.scheme", r.Scheme, workspaceKey, r.Workspace)
	s.span.SetAttributes(attributes...)
	if r.Route != "" {
		s.span.SetName(r.Method + " " + r.Route)
	}
	if r.Status >= 500 {
		s.fail(strconv.Itoa(r.Status))
	}
	s.span.End()
}
