package tracing

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

// whole starts and ends all of a tool call's spans.
func whole(ctx context.Context, t *Tracer, from Wire) {
	request := t.StartRequest("POST", from)
	ctx = request.In(ctx)
	ctx, server := StartMCPServer(ctx, MCP{Method: "tools/call", Target: "demo__echo", ID: "1", Transport: TCP}, Wire{})
	ctx, client := StartMCPClient(ctx, MCP{Method: "tools/call", Target: "echo", App: "demo", Transport: Pipe})
	_ = WireOf(ctx)
	client.EndMCP(nil, nil)
	server.EndMCPResult(false)
	request.EndRequest(Request{Method: "POST", Route: "/mcp", Status: 200})
}

func TestACallDoesNotAllocateIfTracingIsOff(t *testing.T) {
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() { whole(ctx, nil, Wire{}) }); n != 0 {
		t.Errorf("a call allocates %v times", n)
	}
}

// BenchmarkCall measures the spans of a complete tool call, with tracing off and on. Run it with `go test
// -bench Call ./core/tracing`.
func BenchmarkCall(b *testing.B) {
	run := func(name string, tracer *Tracer) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				whole(b.Context(), tracer, Wire{})
			}
		})
	}
	run("off", nil)
	for name, sampler := range map[string]sdktrace.Sampler{"not sampled": sdktrace.NeverSample(), "sampled": sdktrace.AlwaysSample()} {
		provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(tracetest.NewNoopExporter()), sdktrace.WithSampler(sampler))
		run(name, &Tracer{provider, provider.Tracer(scope)})
	}
}

// recorder returns a tracer and the exporter that records its spans.
func recorder(t *testing.T) (*Tracer, *tracetest.InMemoryExporter) {
	t.Helper()
	out := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(out))
	return &Tracer{provider, provider.Tracer(scope)}, out
}

const (
	headerParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	metaParent   = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
)

func TestTheTraceContextInMetaTakesPrecedenceOverTheHeaders(t *testing.T) {
	for name, c := range map[string]struct{ meta, parent, trace string }{
		"a traceparent in _meta":          {metaParent, "00f067aa0ba902b7", "4bf92f3577b34da6a3ce929d0e0e4736"},
		"an invalid traceparent in _meta": {"00-xyz", "", "0af7651916cd43dd8448eb211c80319c"},
		"no traceparent in _meta":         {"", "", "0af7651916cd43dd8448eb211c80319c"},
	} {
		tracer, out := recorder(t)
		request := tracer.StartRequest("POST", Wire{Parent: headerParent})
		_, server := StartMCPServer(request.In(t.Context()), MCP{Method: "ping"}, Wire{Parent: c.meta})
		server.EndMCPResult(false)
		request.EndRequest(Request{Method: "POST", Status: 200})
		spans := out.GetSpans()
		if len(spans) != 2 || spans[1].Parent.SpanID().String() != "b7ad6b7169203331" {
			t.Fatalf("%s: %+v", name, spans)
		}
		want := c.parent
		if want == "" {
			want = spans[1].SpanContext.SpanID().String()
		}
		if got := spans[0]; got.Parent.SpanID().String() != want || got.SpanContext.TraceID().String() != c.trace {
			t.Errorf("%s: the parent is %v in trace %v, want %s in %s", name, got.Parent.SpanID(), got.SpanContext.TraceID(), want, c.trace)
		}
		if linked := len(spans[0].Links) == 1; linked != (c.parent != "") {
			t.Errorf("%s: links %v", name, spans[0].Links)
		}
	}
}

func TestATraceContextIsPassedOnIfTracingIsOff(t *testing.T) {
	var off *Tracer
	ctx := off.StartRequest("POST", Wire{Parent: headerParent, State: "a=1"}).In(t.Context())
	if w := WireOf(ctx); w.Parent != headerParent || w.State != "a=1" {
		t.Errorf("passed on: %+v", w)
	}
	ctx, _ = StartMCPServer(ctx, MCP{Method: "ping"}, Wire{Parent: metaParent})
	if w := WireOf(ctx); w.Parent != metaParent {
		t.Errorf("passed on: %+v", w)
	}
}

func TestAnErrorsKindIsRecordedButItsTextIsNot(t *testing.T) {
	for want, err := range map[string]error{
		"-32602":      &rpc.Error{Code: -32602, Message: "canary"},
		"unavailable": core.Errorf(core.CodeUnavailable, "canary"),
		"cancelled":   context.Canceled,
		"timeout":     context.DeadlineExceeded,
		"_OTHER":      errors.New("canary"),
	} {
		tracer, out := recorder(t)
		_, span := StartMCPServer(tracer.StartRequest("POST", Wire{}).In(t.Context()), MCP{Method: "tools/call"}, Wire{})
		span.EndMCP(err, nil)
		got := out.GetSpans()[0]
		kind := ""
		for _, a := range got.Attributes {
			if a.Key == "error.type" {
				kind = a.Value.AsString()
			}
			if strings.Contains(a.Value.String(), "canary") {
				t.Errorf("%s contains the error's text", a.Key)
			}
		}
		if kind != want || got.Status.Description != "" || len(got.Events) != 0 {
			t.Errorf("error.type %q, status %+v, events %v; want %q", kind, got.Status, got.Events, want)
		}
	}
}

func TestAResultWithIsErrorIsAToolError(t *testing.T) {
	for result, want := range map[string]bool{`{"isError":true}`: true, `{"isError":false}`: false, `{"content":[{"text":"\"isError\":true"}]}`: false} {
		if got := isToolError([]byte(result)); got != want {
			t.Errorf("%s: %v", result, got)
		}
	}
}

func TestOpenTelemetrysVariablesTurnTracingOnAndOff(t *testing.T) {
	for name, c := range map[string]struct {
		env      map[string]string
		on       bool
		protocol string
		warning  string
	}{
		"nothing":                     {nil, false, protocolHTTP, ""},
		"an endpoint":                 {map[string]string{envEndpoint: "http://x"}, true, protocolHTTP, ""},
		"an endpoint for traces only": {map[string]string{envTracesEndpoint: "http://x"}, true, protocolHTTP, ""},
		"none":                        {map[string]string{envEndpoint: "http://x", envExporter: "none"}, false, protocolHTTP, ""},
		"disabled":                    {map[string]string{envEndpoint: "http://x", envDisabled: "TRUE"}, false, protocolHTTP, ""},
		"otlp":                        {map[string]string{envExporter: "otlp"}, true, protocolHTTP, ""},
		"another exporter":            {map[string]string{envExporter: "zipkin"}, false, protocolHTTP, envExporter},
		"grpc":                        {map[string]string{envExporter: "otlp", envProtocol: "grpc"}, true, protocolGRPC, ""},
		"grpc for traces":             {map[string]string{envExporter: "otlp", envProtocol: "http/protobuf", envTracesProtocol: "grpc"}, true, protocolGRPC, ""},
		"an unknown protocol":         {map[string]string{envExporter: "otlp", envProtocol: "http/json"}, true, protocolHTTP, envProtocol},
		"the supported propagator":    {map[string]string{envExporter: "otlp", envPropagators: "tracecontext"}, true, protocolHTTP, ""},
		"another propagator":          {map[string]string{envExporter: "otlp", envPropagators: "tracecontext, b3"}, true, protocolHTTP, envPropagators},
		"an unknown sampler":          {map[string]string{envExporter: "otlp", envSampler: "sometimes"}, true, protocolHTTP, envSampler},
	} {
		var lines testkit.Log
		got := readSettings(c.env, hclog.New(&hclog.LoggerOptions{Output: &lines}))
		if got.on != c.on || c.on && got.protocol != c.protocol {
			t.Errorf("%s: %+v", name, got)
		}
		if said := lines.String(); (c.warning == "") != (said == "") || !strings.Contains(said, c.warning) {
			t.Errorf("%s: the log says %q", name, said)
		}
	}
}

// failing is an exporter that behaves as if its collector were unavailable.
type failing struct{ sdktrace.SpanExporter }

func (failing) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error {
	return errors.New("connection refused")
}

func TestAnUnavailableCollectorIsLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines testkit.Log
		e := &exporter{SpanExporter: failing{}, log: hclog.New(&hclog.LoggerOptions{Output: &lines})}
		for range 181 { // from 0 s to 180 s
			if err := e.ExportSpans(t.Context(), make([]sdktrace.ReadOnlySpan, 2)); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Second)
		}
		if n := strings.Count(lines.String(), "\n"); n != 4 || !strings.Contains(lines.String(), "spans=120") {
			t.Errorf("%d lines in three minutes:\n%s", n, lines.String())
		}
	})
}

func TestAnUnavailableCollectorBlocksNeitherCallsNorShutdown(t *testing.T) {
	t.Setenv(envEndpoint, "http://127.0.0.1:1")
	for _, protocol := range []string{protocolHTTP, protocolGRPC} {
		tracer, err := New(t.Context(), Options{
			Environment: map[string]string{envEndpoint: "http://127.0.0.1:1", envProtocol: protocol}, Logger: hclog.NewNullLogger(),
		})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for range 3000 { // more spans than the queue holds
			whole(t.Context(), tracer, Wire{})
		}
		calls := time.Since(began)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_ = tracer.Close(ctx) // Close may report that spans were not exported
		cancel()
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("%s: 3000 calls took %v (%v including the shutdown)", protocol, calls, took)
		}
	}
}
