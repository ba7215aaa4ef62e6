// Package tracing records what happens to a request as OpenTelemetry spans, and exports them over OTLP.
//
// It owns the OpenTelemetry SDK, the OTEL_* environment variables, the names and attributes of every span
// (the conventions for HTTP, gRPC, MCP and generative AI), and W3C Trace Context on the wire: the HTTP
// headers traceparent and tracestate, and the members of the same names in the _meta of MCP requests
// (SEP-414). Other packages start spans with the functions of this package and import nothing of
// OpenTelemetry.
//
// A span is started below the one in its context. Where nothing is recorded - tracing is off, or the trace
// is not sampled - starting a span allocates nothing and returns the context unchanged, which still carries
// the trace context of the client, so that it reaches the app.
//
// Spans have no arguments, results, messages of errors, texts of conversations, URIs of resources or
// credentials: only names, ids, counts and codes.
package tracing
