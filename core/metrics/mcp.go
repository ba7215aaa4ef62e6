package metrics

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// toolError is the error.type of a tool call whose result reports an error.
const toolError = "tool_error"

func (m *Metrics) addMCP() {
	// The buckets recommended by OpenTelemetry's conventions for MCP.
	buckets := []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}
	served := m.histogram("mcp_server_operation_duration_seconds", "Duration of MCP requests from clients, from receipt to response.",
		buckets, "mcp_method_name", "mcp_protocol_version", "error_type")
	sent := m.histogram("mcp_client_operation_duration_seconds", "Duration of MCP requests to apps, from sending to response.",
		buckets, "app", "mcp_method_name", "error_type")
	toolCalls := m.counter("ropewalk_tool_calls_total", "Tool calls from MCP, the HTTP API and chats.", "app", "tool", "outcome")
	m.served.find = func(k servedKey) (prometheus.Observer, bool) {
		return served.WithLabelValues(k.method, k.revision, k.errorType), true
	}
	m.sent.find = func(k sentKey) (prometheus.Observer, bool) {
		known := m.apps.admits(k.app)
		return sent.WithLabelValues(m.apps.or(k.app), k.method, k.errorType), known
	}
	m.toolCalls.find = func(k toolCallKey) (prometheus.Counter, bool) {
		known, tool := m.apps.admits(k.app), k.tool
		if k.app != "" && !m.tools.admits(k.app+"__"+k.tool) {
			known, tool = false, other
		}
		return toolCalls.WithLabelValues(m.apps.or(k.app), tool, k.outcome), known
	}
}

// The keys of series. Methods, revisions, errors and outcomes come from fixed sets.
type (
	servedKey   struct{ method, revision, errorType string }
	sentKey     struct{ app, method, errorType string }
	toolCallKey struct{ app, tool, outcome string }
)

// ServerOperation records a request from an MCP client. code is the code of its JSON-RPC error, or 0; failed
// reports whether its result says that a tool failed.
func (m *Metrics) ServerOperation(method, revision string, code int64, failed bool, took time.Duration) {
	errorType := ""
	switch {
	case code != 0:
		errorType = rpcErrorType(code)
	case failed:
		errorType = toolError
	}
	m.served.of(servedKey{methodOf(method), revisionOf(revision), errorType}).Observe(took.Seconds())
}

// ClientOperation records a request to an app.
func (m *Metrics) ClientOperation(app, method string, took time.Duration, err error) {
	m.sent.of(sentKey{app, methodOf(method), errorType(err)}).Observe(took.Seconds())
}

// errorType returns the error.type of a request to an app.
func errorType(err error) string {
	if err == nil {
		return ""
	}
	if failure, ok := errors.AsType[*rpc.Error](err); ok {
		return rpcErrorType(int64(failure.Code))
	}
	switch {
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	}
	return other
}

// ToolCall records a tool call. app and tool are "" if there is no tool with the name that the caller used; failed
// reports whether the result says that the tool failed.
func (m *Metrics) ToolCall(app, tool string, failed bool, err error) {
	m.toolCalls.of(toolCallKey{app, tool, outcome(failed, err)}).Inc()
}

// outcome summarizes a call in one word: ok, tool_error, rpc_error, cancelled, or a code of core.Error.
func outcome(failed bool, err error) string {
	switch {
	case failed:
		return toolError
	case err == nil:
		return "ok"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	}
	if _, ok := errors.AsType[*rpc.Error](err); ok {
		return "rpc_error"
	}
	return string(core.CodeOf(err))
}

// methodOf returns an MCP method, or other for a method that the protocol does not define, because clients and apps may
// send anything.
func methodOf(method string) string {
	switch method {
	case "initialize", "ping", "server/discover", "tools/call", "tools/list", "prompts/list", "prompts/get",
		"resources/list", "resources/templates/list", "resources/read", "resources/subscribe", "resources/unsubscribe",
		"completion/complete", "logging/setLevel", "subscriptions/listen", "tasks/get", "tasks/result", "tasks/list", "tasks/cancel",
		"tasks/update":
		return method
	}
	return other
}

// revisionOf returns a protocol revision, or other for an unknown one.
func revisionOf(revision string) string {
	switch revision {
	case "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28":
		return revision
	}
	return other
}

// rpcErrorType returns the error.type of a JSON-RPC error: its code if the protocol defines it, or else
// other, because apps choose their own.
func rpcErrorType(code int64) string {
	switch code {
	case -32700, -32600, -32601, -32602, -32603, // JSON-RPC
		-32000, -32001, -32002, -32003, -32004, -32020, -32042, -32800: // MCP and this server
		return strconv.FormatInt(code, 10)
	}
	return other
}
