package tracing

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// logPause is the minimum time between two log messages about failed exports.
const logPause = time.Minute

// newExporter returns the exporter for a protocol. The OTEL_EXPORTER_OTLP_* variables define its address,
// headers, certificates and limits.
func newExporter(ctx context.Context, protocol string, log hclog.Logger) (sdktrace.SpanExporter, error) {
	client := otlptracehttp.NewClient()
	if protocol == protocolGRPC {
		client = otlptracegrpc.NewClient()
	}
	if err := client.Start(ctx); err != nil {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT: %w", err)
	}
	return &exporter{SpanExporter: upload{client}, log: log}, nil
}

// describe returns the resource of all spans: the service, with the attributes that OTEL_RESOURCE_ATTRIBUTES
// and OTEL_SERVICE_NAME add or replace.
func describe(ctx context.Context, version string) (*resource.Resource, error) {
	return resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "ropewalk"), attribute.String("service.version", version)),
		resource.WithFromEnv())
}

// exporter logs failed exports at most once per logPause, because the collector may be unavailable for a long
// time.
type exporter struct {
	sdktrace.SpanExporter
	log hclog.Logger

	mu     sync.Mutex
	logged time.Time
	lost   int // spans since the last message
}

// ExportSpans implements sdktrace.SpanExporter.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if err := e.SpanExporter.ExportSpans(ctx, spans); err != nil {
		e.failed(len(spans), err)
	}
	return nil // the SDK would write the error to standard error
}

func (e *exporter) failed(spans int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lost += spans
	if !e.logged.IsZero() && time.Since(e.logged) < logPause {
		return
	}
	e.log.Warn("spans were not exported; see the OTEL_EXPORTER_OTLP_* variables", "spans", e.lost, "error", err)
	e.logged, e.lost = time.Now(), 0
}
