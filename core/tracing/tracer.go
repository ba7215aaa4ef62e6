package tracing

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// scope is the instrumentation scope of every span.
const scope = "github.com/ropewalk/ropewalk"

// flushLimit is how long Close tries to export the remaining spans.
const flushLimit = 5 * time.Second

// Options configure a Tracer.
type Options struct {
	Environment map[string]string // the process's environment; the SDK also reads it itself
	Version     string            // the server's version
	Logger      hclog.Logger
}

// Tracer starts the traces of requests. A nil *Tracer does not start any, but still reads the trace context of
// clients.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// New returns a Tracer configured by the OTEL_* variables, or nil if they turn tracing off. It does not connect to
// anything: an unavailable collector does not cause an error.
func New(ctx context.Context, o Options) (*Tracer, error) {
	s := readSettings(o.Environment, o.Logger)
	if !s.on {
		return nil, nil
	}
	out, err := newExporter(ctx, s.protocol, o.Logger)
	if err != nil {
		return nil, err
	}
	resources, err := describe(ctx, o.Version)
	if err != nil {
		o.Logger.Warn("part of OTEL_RESOURCE_ATTRIBUTES is not valid", "error", err)
	}
	t := &Tracer{provider: sdktrace.NewTracerProvider(sdktrace.WithBatcher(out), sdktrace.WithResource(resources))}
	t.tracer = t.provider.Tracer(scope)
	o.Logger.Info("traces are exported over OTLP", "protocol", s.protocol)
	return t, nil
}

// Close exports the remaining spans, for at most 5 s.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, flushLimit)
	defer cancel()
	return t.provider.Shutdown(ctx)
}
