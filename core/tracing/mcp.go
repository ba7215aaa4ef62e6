package tracing

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/ropewalk/ropewalk/core/rpc"
)

// This server's own attributes.
const (
	appKey       = "ropewalk.app.name"
	workspaceKey = "ropewalk.workspace.id"
)

// The transports of MCP (network.transport).
const (
	Pipe = "pipe" // standard streams
	TCP  = "tcp"  // HTTP
)

// maxName limits names chosen by clients in spans.
const maxName = 128

// MCP is an MCP request.
type MCP struct {
	Method    string
	Target    string // the tool or prompt that it refers to; may be ""
	Session   string // "" without one
	Revision  string // the protocol revision; "" if unknown
	ID        string // the ID of the JSON-RPC request, as text
	Transport string // Pipe or TCP
	App       string // the app that is called; "" for a request from a client
	Workspace string // "" for a request to an app
}

// servedKey marks the context of a request that has a span of StartMCPServer.
type servedKey struct{}

// StartMCPServer starts the span of a request from a client. from is the trace context in its _meta. If there
// is one, it is the parent, and the span of the HTTP request is linked.
func StartMCPServer(ctx context.Context, r MCP, from Wire) (context.Context, Span) {
	ctx, span := startMCPServer(ctx, r, from)
	if span.Recording() {
		ctx = context.WithValue(ctx, servedKey{}, true)
	}
	return ctx, span
}

func startMCPServer(ctx context.Context, r MCP, from Wire) (context.Context, Span) {
	if from.Parent == "" {
		return startMCP(ctx, trace.SpanKindServer, r)
	}
	tracer := tracerOf(ctx)
	carrier := trace.SpanContextFromContext(ctx)
	ctx = received(ctx, from)
	if tracer == nil {
		return ctx, Span{}
	}
	if trace.SpanContextFromContext(ctx).Equal(carrier) { // from is not valid
		return startMCP(ctx, trace.SpanKindServer, r)
	}
	ctx, span := tracer.Start(ctx, r.name(), trace.WithSpanKind(trace.SpanKindServer), trace.WithLinks(trace.Link{SpanContext: carrier}))
	if span.IsRecording() {
		span.SetAttributes(r.attributes()...)
	}
	return ctx, Span{span, tracer}
}

// StartMCPClient starts the span of a request to an app. End it with EndMCP.
func StartMCPClient(ctx context.Context, r MCP) (context.Context, Span) {
	return startMCP(ctx, trace.SpanKindClient, r)
}

func startMCP(ctx context.Context, kind trace.SpanKind, r MCP) (context.Context, Span) {
	if !Recording(ctx) {
		return ctx, Span{}
	}
	return child(ctx, kind, r.name(), r.attributes())
}

// EndMCP ends the span of a request to an app with its result or error.
func (s Span) EndMCP(err error, result []byte) {
	switch {
	case !s.Recording():
	case err == nil:
		s.EndMCPResult(isToolError(result))
	default:
		s.EndMCPError(err)
	}
}

// EndTool ends the span of a tool call, whose result may report an error.
func (s Span) EndTool(failed bool, err error) {
	if err != nil {
		s.EndMCPError(err)
		return
	}
	s.EndMCPResult(failed)
}

// EndMCPResult ends the span of a request that has a result, which may report a tool error.
func (s Span) EndMCPResult(failed bool) {
	if !s.Recording() {
		return
	}
	if failed {
		s.fail("tool_error")
	}
	s.span.End()
}

// EndMCPError ends the span of a request that was rejected.
func (s Span) EndMCPError(err error) {
	if !s.Recording() {
		return
	}
	if refused, ok := errors.AsType[*rpc.Error](err); ok {
		s.span.SetAttributes(attribute.String("rpc.response.status_code", strconv.Itoa(refused.Code)))
	}
	s.End(err)
}

func (r *MCP) name() string {
	if r.Target == "" {
		return clip(r.Method)
	}
	return clip(r.Method) + " " + clip(r.Target)
}

func (r *MCP) attributes() []attribute.KeyValue {
	attributes := make([]attribute.KeyValue, 0, 10)
	attributes = append(attributes, attribute.String("mcp.method.name", clip(r.Method)))
	attributes = optional(attributes, "mcp.session.id", r.Session, "mcp.protocol.version", r.Revision, "jsonrpc.request.id", clip(r.ID),
		"network.transport", r.Transport, appKey, r.App, workspaceKey, r.Workspace)
	switch {
	case r.Target == "":
	case r.Method == "prompts/get":
		attributes = append(attributes, attribute.String("gen_ai.prompt.name", clip(r.Target)))
	default:
		attributes = append(attributes, attribute.String("gen_ai.tool.name", clip(r.Target)), attribute.String("gen_ai.operation.name", "execute_tool"))
	}
	return attributes
}

func clip(text string) string { return text[:min(len(text), maxName)] }

// isToolError reports whether a tool's result reports an error.
func isToolError(part []byte) bool {
	if !bytes.Contains(part, []byte(`"isError"`)) {
		return false
	}
	var result struct {
		IsError bool `json:"isError"`
	}
	return json.Unmarshal(part, &result) == nil && result.IsError
}
