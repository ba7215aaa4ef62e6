package table

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/ropewalk/ropewalk/bench/load"
)

// traces measures the cost of tracing: no calls, one call in a hundred, and all calls. A collector in this
// process counts the spans that it receives and discards them.
func (b *bench) traces(ctx context.Context) error {
	var received atomic.Int64
	collector := httptest.NewServer(countSpans(&received))
	defer collector.Close()
	sampled := func(name, ratio string) (contestant, error) {
		return b.instance(ctx, b.o.Service, service{name: name, bundle: sdkBundle, env: []string{
			"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL, "OTEL_TRACES_SAMPLER=parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG=" + ratio,
		}}, "")
	}
	off, err1 := b.instance(ctx, b.o.Service, service{name: "no traces", bundle: sdkBundle}, "")
	few, err2 := sampled("traces 1%", "0.01")
	all, err3 := sampled("traces 100%", "1")
	if err := firstOf(err1, err2, err3); err != nil {
		return err
	}
	received.Store(0)
	got, err := b.race(ctx, "call c=16, traces", load.Plan{Kind: load.Calls, Concurrency: 16}, off, few, all)
	if err != nil {
		return err
	}
	b.compareRates("calls/s with traces of 1% of the calls, against none, c=16", 0.98, got[1], got[0])
	b.compareRates("calls/s with traces of all calls, against none, c=16", 0.9, got[2], got[0])
	b.statement("CPU per call without traces, with 1% and with all", fmt.Sprintf("%.1f, %.1f and %.1f us",
		medianOf(got[0], sample.cost), medianOf(got[1], sample.cost), medianOf(got[2], sample.cost)), "")
	calls := int64(0)
	for _, s := range got[2] {
		calls += s.Requests
	}
	if received.Load() == 0 {
		return errors.New("the collector received no span")
	}
	b.statement("spans received by the collector (including the warm-up), and measured calls", fmt.Sprintf("%d, %d", received.Load(), calls), "")
	return nil
}

// countSpans returns a collector for OTLP over HTTP that counts spans.
func countSpans(received *atomic.Int64) http.Handler {
	return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		fields(body, 1, func(resource []byte) { // ExportTraceServiceRequest.resource_spans
			fields(resource, 2, func(scope []byte) { // ResourceSpans.scope_spans
				fields(scope, 2, func([]byte) { received.Add(1) }) // ScopeSpans.spans
			})
		})
	})
}

// fields calls each with the bytes of every occurrence of a field in a protobuf message.
func fields(message []byte, number protowire.Number, each func([]byte)) {
	for len(message) > 0 {
		n, kind, size := protowire.ConsumeTag(message)
		if size < 0 {
			return
		}
		message = message[size:]
		if n == number && kind == protowire.BytesType {
			if value, size := protowire.ConsumeBytes(message); size >= 0 {
				each(value)
			}
		}
		if size = protowire.ConsumeFieldValue(n, kind, message); size < 0 {
			return
		}
		message = message[size:]
	}
}
