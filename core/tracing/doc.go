// Package tracing records the steps of requests as OpenTelemetry spans, and exports them over OTLP.
//
// It contains the OpenTelemetry SDK, reads the OTEL_* environment variables, and defines the names and
// attributes of every span (following the conventions for HTTP, gRPC, MCP and generative AI). It reads and
// writes W3C Trace Context: the HTTP headers traceparent and tracestate, and the members of the same names in
// the _meta of MCP requests (SEP-414). Other packages start spans with the functions of this package and do not
// import OpenTelemetry.
//
// A span's parent is the span in its context. If nothing is recorded, because tracing is off or the trace is
// not sampled, starting a span allocates nothing and returns the context unchanged. The context still carries
// the client's trace context, so that it reaches the app.
//
// Spans contain only names, ids, counts and codes. They never contain arguments, results, error messages, the
// text of conversations, resource URIs or credentials.
package tracing
