package tracing

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// kept is an OTLP client that stores the batches instead of uploading them.
type kept struct{ batches []*otlp.ResourceSpans }

func (*kept) Start(context.Context) error { return nil }
func (*kept) Stop(context.Context) error  { return nil }

func (k *kept) UploadTraces(_ context.Context, batches []*otlp.ResourceSpans) error {
	k.batches = batches
	return nil
}

// spansOfAllKinds returns spans that together use every field that a span can have.
func spansOfAllKinds(t testing.TB) []sdktrace.ReadOnlySpan {
	t.Helper()
	out := tracetest.NewInMemoryExporter()
	limits := sdktrace.NewSpanLimits()
	limits.AttributeCountLimit, limits.EventCountLimit, limits.LinkCountLimit, limits.AttributePerLinkCountLimit, limits.AttributePerEventCountLimit = 5, 1, 1, 1, 1
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(out), sdktrace.WithRawSpanLimits(limits),
		sdktrace.WithResource(resource.NewWithAttributes("https://example.org/schema", attribute.String("service.name", "é"), attribute.Int("n", 1))))
	tracer := provider.Tracer(scope)
	long := strings.Repeat("long", 5000)
	for i, kind := range []trace.SpanKind{trace.SpanKindInternal, trace.SpanKindServer, trace.SpanKindClient, trace.SpanKindProducer, trace.SpanKindConsumer} {
		parent := t.Context()
		if i%2 == 0 {
			parent = received(parent, Wire{Parent: headerParent, State: "a=1,b=2"})
		}
		parent, root := tracer.Start(parent, "root", trace.WithTimestamp(time.Unix(-5, 0)))
		more := trace.Link{SpanContext: trace.SpanContextFromContext(received(t.Context(), Wire{Parent: metaParent})), Attributes: []attribute.KeyValue{attribute.Bool("b", true), attribute.Bool("c", true)}}
		_, span := tracer.Start(parent, long[:i*200], trace.WithSpanKind(kind), trace.WithLinks(more, more))
		span.SetAttributes(attribute.Bool("true", true), attribute.Bool("false", false), attribute.Int64("negative", -1), attribute.Float64("half", 0.5),
			attribute.StringSlice("texts", []string{"", "a", long}), attribute.String("dropped", "x"))
		span.AddEvent("lost")
		span.AddEvent("event", trace.WithAttributes(attribute.String("", ""), attribute.String("dropped", "x")))
		span.SetStatus([]codes.Code{codes.Unset, codes.Ok, codes.Error}[i%3], "why")
		span.End()
		root.End()
	}
	return out.GetSpans().Snapshots()
}

func TestSpansAreEncodedAsTheSDKEncodesThem(t *testing.T) {
	spans := spansOfAllKinds(t)
	var ours, theirs kept
	exporter := otlptrace.NewUnstarted(&theirs)
	if err := errors.Join(upload{&ours}.ExportSpans(t.Context(), spans), exporter.ExportSpans(t.Context(), spans)); err != nil {
		t.Fatal(err)
	}
	raw, err := proto.Marshal(ours.batches[0])
	if err != nil {
		t.Fatal(err)
	}
	var got otlp.ResourceSpans
	if err := proto.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if len(theirs.batches) != 1 || len(got.GetScopeSpans()) != 1 || len(got.GetScopeSpans()[0].GetSpans()) != len(spans) {
		t.Fatalf("%d batches, %v", len(theirs.batches), &got)
	}
	if !proto.Equal(&got, theirs.batches[0]) {
		t.Errorf("ours %v\ntheirs %v", &got, theirs.batches[0])
	}
}

func TestABatchIsExportedEvenIfItContainsInvalidUTF8(t *testing.T) {
	out := tracetest.NewInMemoryExporter()
	_, span := sdktrace.NewTracerProvider(sdktrace.WithSyncer(out)).Tracer(scope).Start(t.Context(), "cut \xc3")
	span.SetAttributes(attribute.String("a", "cut \xe2\x82"))
	span.End()
	var got otlp.ResourceSpans
	if err := proto.Unmarshal(appendBatch(nil, out.GetSpans().Snapshots()), &got); err != nil {
		t.Fatal(err)
	}
	if s := got.GetScopeSpans()[0].GetSpans()[0]; s.GetName() != "cut \uFFFD" || s.GetAttributes()[0].GetValue().GetStringValue() != "cut \uFFFD" {
		t.Errorf("%v", s)
	}
}

// BenchmarkEncode measures the encoding of a batch for export, by this package and by the SDK.
func BenchmarkEncode(b *testing.B) {
	out := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(out))
	tracer := &Tracer{provider, provider.Tracer(scope)}
	for range 170 {
		whole(b.Context(), tracer, Wire{})
	}
	spans := out.GetSpans().Snapshots()
	var batch kept
	for name, exporter := range map[string]sdktrace.SpanExporter{"ours": upload{&batch}, "the SDK's": otlptrace.NewUnstarted(&batch)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := exporter.ExportSpans(b.Context(), spans); err != nil {
					b.Fatal(err)
				}
				if _, err := proto.Marshal(batch.batches[0]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
