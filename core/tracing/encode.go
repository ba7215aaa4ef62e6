package tracing

import (
	"context"
	"math"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
)

// upload exports spans with an SDK client, encoded by this package. Creating a message of the generated types
// for each span and attribute takes three times as long, and 20 allocations per span (go test -bench Encode
// ./core/tracing).
type upload struct{ client otlptrace.Client }

// ExportSpans implements sdktrace.SpanExporter.
func (u upload) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	batch := &otlp.ResourceSpans{}
	// Unknown fields of a message are written as they are, so these bytes are its encoding.
	batch.ProtoReflect().SetUnknown(appendBatch(nil, spans))
	return u.client.UploadTraces(ctx, []*otlp.ResourceSpans{batch})
}

// Shutdown implements sdktrace.SpanExporter.
func (u upload) Shutdown(ctx context.Context) error { return u.client.Stop(ctx) }

// appendBatch appends spans as the fields of a ResourceSpans (opentelemetry/proto/trace/v1/trace.proto). All
// spans of a process share one resource and one scope.
func appendBatch(b []byte, spans []sdktrace.ReadOnlySpan) []byte {
	b = slices.Grow(b, 512*len(spans))
	source := spans[0].Resource()
	b = appendMessage(b, 1, func(b []byte) []byte { return appendAttributes(b, 1, source.Attributes()) })
	b = appendMessage(b, 2, func(b []byte) []byte {
		b = appendMessage(b, 1, func(b []byte) []byte { return appendText(b, 1, spans[0].InstrumentationScope().Name) })
		for _, s := range spans {
			b = appendMessage(b, 2, func(b []byte) []byte { return appendSpan(b, s) })
		}
		return b
	})
	return appendText(b, 3, source.SchemaURL())
}

func appendSpan(b []byte, s sdktrace.ReadOnlySpan) []byte {
	of, parent := s.SpanContext(), s.Parent()
	b = appendContext(b, of)
	if id := parent.SpanID(); id.IsValid() {
		b = appendBytes(b, 4, id[:])
	}
	b = appendText(b, 5, s.Name())
	b = appendNumber(b, 6, uint64(max(s.SpanKind(), 0))) // OTLP uses the same numbers
	b = appendTime(b, 7, s.StartTime().UnixNano())
	b = appendTime(b, 8, s.EndTime().UnixNano())
	b = appendAttributes(b, 9, s.Attributes())
	b = appendCount(b, 10, s.DroppedAttributes())
	for _, e := range s.Events() {
		b = appendMessage(b, 11, func(b []byte) []byte {
			b = appendTime(b, 1, e.Time.UnixNano())
			b = appendText(b, 2, e.Name)
			b = appendAttributes(b, 3, e.Attributes)
			return appendCount(b, 4, e.DroppedAttributeCount)
		})
	}
	b = appendCount(b, 12, s.DroppedEvents())
	for _, l := range s.Links() {
		b = appendMessage(b, 13, func(b []byte) []byte {
			b = appendContext(b, l.SpanContext)
			b = appendAttributes(b, 4, l.Attributes)
			b = appendCount(b, 5, l.DroppedAttributeCount)
			return appendFlags(b, 6, l.SpanContext, l.SpanContext)
		})
	}
	b = appendCount(b, 14, s.DroppedLinks())
	b = appendMessage(b, 15, func(b []byte) []byte {
		b = appendText(b, 2, s.Status().Description)
		return appendNumber(b, 3, uint64(max(statusOf(s.Status().Code), 0)))
	})
	return appendFlags(b, 16, of, parent)
}

func statusOf(c codes.Code) otlp.Status_StatusCode {
	switch c {
	case codes.Ok:
		return otlp.Status_STATUS_CODE_OK
	case codes.Error:
		return otlp.Status_STATUS_CODE_ERROR
	case codes.Unset:
	}
	return otlp.Status_STATUS_CODE_UNSET
}

// appendContext appends the fields that identify a span, in the span itself and in links to it.
func appendContext(b []byte, of trace.SpanContext) []byte {
	traceID, id := of.TraceID(), of.SpanID()
	b = appendBytes(b, 1, traceID[:])
	b = appendBytes(b, 2, id[:])
	return appendText(b, 3, of.TraceState().String())
}

// appendFlags appends a span's trace flags, and whether the context in which it was started came from another
// process.
func appendFlags(b []byte, field protowire.Number, of, from trace.SpanContext) []byte {
	flags := uint32(of.TraceFlags()) | uint32(otlp.SpanFlags_SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK)
	if from.IsRemote() {
		flags |= uint32(otlp.SpanFlags_SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK)
	}
	return protowire.AppendFixed32(protowire.AppendTag(b, field, protowire.Fixed32Type), flags)
}

func appendAttributes(b []byte, field protowire.Number, attributes []attribute.KeyValue) []byte {
	for _, a := range attributes {
		b = appendMessage(b, field, func(b []byte) []byte {
			b = appendText(b, 1, string(a.Key))
			return appendMessage(b, 2, func(b []byte) []byte { return appendValue(b, a.Value) })
		})
	}
	return b
}

// appendValue appends the field of an AnyValue. Values of other types are written as text.
func appendValue(b []byte, v attribute.Value) []byte {
	switch v.Type() {
	case attribute.BOOL:
		return protowire.AppendVarint(protowire.AppendTag(b, 2, protowire.VarintType), protowire.EncodeBool(v.AsBool()))
	case attribute.INT64:
		return protowire.AppendVarint(protowire.AppendTag(b, 3, protowire.VarintType), uint64(v.AsInt64())) //nolint:gosec // the wire's two's complement
	case attribute.FLOAT64:
		return protowire.AppendFixed64(protowire.AppendTag(b, 4, protowire.Fixed64Type), math.Float64bits(v.AsFloat64()))
	case attribute.STRINGSLICE:
		return appendMessage(b, 5, func(b []byte) []byte {
			for _, text := range v.AsStringSlice() {
				b = appendMessage(b, 1, func(b []byte) []byte { return appendValue(b, attribute.StringValue(text)) })
			}
			return b
		})
	default:
		return protowire.AppendString(protowire.AppendTag(b, 1, protowire.BytesType), valid(v.String()))
	}
}

// appendMessage appends a field that is a message. write appends the message's fields.
func appendMessage(b []byte, field protowire.Number, write func([]byte) []byte) []byte {
	b = append(protowire.AppendTag(b, field, protowire.BytesType), 0) // the size of most messages takes one byte
	start := len(b)
	b = write(b)
	var size [10]byte
	varint := protowire.AppendVarint(size[:0], uint64(len(b)-start)) //nolint:gosec // not negative
	b[start-1] = varint[0]
	return slices.Insert(b, start, varint[1:]...)
}

func appendText(b []byte, field protowire.Number, text string) []byte {
	if text == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), valid(text))
}

// valid replaces invalid UTF-8 in text, for which a collector would reject the whole batch.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

func appendBytes(b []byte, field protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), value)
}

func appendNumber(b []byte, field protowire.Number, n uint64) []byte {
	if n == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), n)
}

func appendCount(b []byte, field protowire.Number, n int) []byte {
	return appendNumber(b, field, uint64(max(n, 0)))
}

func appendTime(b []byte, field protowire.Number, nanoseconds int64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), uint64(max(nanoseconds, 0)))
}
