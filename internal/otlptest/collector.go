package otlptest

import (
	"context"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// Span is a received span.
type Span struct {
	Trace, ID, Parent string // hexadecimal; Parent may be ""
	Name              string
	Kind              string            // SERVER, CLIENT or INTERNAL
	Attributes        map[string]string // as text
	Failed            bool
	Links             []string // the ids of spans
	Service           string
}

// Collector receives spans. Its methods are safe for concurrent use.
type Collector struct {
	collector.UnimplementedTraceServiceServer

	HTTP string // the endpoint for http/protobuf
	GRPC string // the endpoint for grpc

	mu      sync.Mutex
	spans   []Span
	changed chan struct{}
}

// Start returns a collector that runs until the test ends.
func Start(t *testing.T) *Collector {
	t.Helper()
	c := &Collector{changed: make(chan struct{})}
	web := httptest.NewServer(http.HandlerFunc(c.serveHTTP))
	t.Cleanup(web.Close)
	var listen net.ListenConfig
	ln, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, c)
	go func() { _ = server.Serve(ln) }()
	t.Cleanup(server.Stop)
	c.HTTP, c.GRPC = web.URL, "http://"+ln.Addr().String()
	return c
}

// Export implements the service of OTLP over gRPC.
func (c *Collector) Export(_ context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	c.add(r)
	return &collector.ExportTraceServiceResponse{}, nil
}

func (c *Collector) serveHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var request collector.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" || proto.Unmarshal(body, &request) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.add(&request)
}

func (c *Collector) add(r *collector.ExportTraceServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range r.GetResourceSpans() {
		service := texts(resource.GetResource().GetAttributes())["service.name"]
		for _, scope := range resource.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans = append(c.spans, read(s, service))
			}
		}
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

func read(s *trace.Span, service string) Span {
	out := Span{
		Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()),
		Name: s.GetName(), Kind: s.GetKind().String()[len("SPAN_KIND_"):], Attributes: texts(s.GetAttributes()),
		Failed: s.GetStatus().GetCode() == trace.Status_STATUS_CODE_ERROR, Service: service,
	}
	for _, l := range s.GetLinks() {
		out.Links = append(out.Links, hex.EncodeToString(l.GetSpanId()))
	}
	return out
}

func texts(attributes []*common.KeyValue) map[string]string {
	all := map[string]string{}
	for _, a := range attributes {
		v := a.GetValue()
		if s, ok := v.GetValue().(*common.AnyValue_StringValue); ok {
			all[a.GetKey()] = s.StringValue
			continue
		}
		all[a.GetKey()] = v.String()
	}
	return all
}

// Spans returns all spans that were received.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span(nil), c.spans...)
}

// Await waits for the first span with this name and returns it.
func (c *Collector) Await(t *testing.T, name string) Span {
	t.Helper()
	for {
		c.mu.Lock()
		changed := c.changed
		for _, s := range c.spans {
			if s.Name == name {
				c.mu.Unlock()
				return s
			}
		}
		c.mu.Unlock()
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatalf("no span %q was received, only %v", name, c.Names())
		}
	}
}

// Names returns the names of all spans that were received.
func (c *Collector) Names() (names []string) {
	for _, s := range c.Spans() {
		names = append(names, s.Name)
	}
	return names
}
