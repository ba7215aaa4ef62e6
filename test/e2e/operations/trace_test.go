package operations

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/otlptest"
	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

const (
	clientTrace  = "4bf92f3577b34da6a3ce929d0e0e4736"
	clientSpan   = "00f067aa0ba902b7"
	clientParent = "00-" + clientTrace + "-" + clientSpan + "-01"
	canary       = "canary-argument"
)

// traced returns the option to export traces to c. Spans are flushed only at shutdown. Without that flush, the tests
// would fail.
func traced(c *otlptest.Collector, protocol string) harness.Option {
	endpoint := c.HTTP
	if protocol == "grpc" {
		endpoint = c.GRPC
	}
	return func(s *harness.Server) {
		s.Environ = append(s.Environ, "OTEL_EXPORTER_OTLP_ENDPOINT="+endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL="+protocol, "OTEL_BSP_SCHEDULE_DELAY=3600000")
	}
}

type spans map[string]otlptest.Span

// traceOf returns the spans of a trace that c received, by name.
func traceOf(t *testing.T, c *otlptest.Collector, trace string) spans {
	t.Helper()
	all := spans{}
	for _, s := range c.Spans() {
		if s.Trace != trace { // from the test's requests without a trace context
			continue
		}
		if s.Service != "ropewalk" {
			t.Errorf("%s belongs to the service %q", s.Name, s.Service)
		}
		for key, value := range s.Attributes {
			if strings.Contains(value, canary) || strings.Contains(value, "the-token") {
				t.Errorf("the attribute %s of %s contains an argument or a token: %s", key, s.Name, value)
			}
		}
		all[s.Name] = s
	}
	return all
}

// check returns the span with the given name. It compares the parent's ID, the kind and the attributes. In attributes,
// names and values alternate.
func (all spans) check(t *testing.T, name, kind, parent string, attributes ...string) otlptest.Span {
	t.Helper()
	s, ok := all[name]
	if !ok {
		var names []string
		for other := range all {
			names = append(names, other)
		}
		t.Fatalf("there is no span %q, only %q", name, names)
	}
	if s.Kind != kind || s.Parent != parent || s.Failed {
		t.Errorf("%s is %s with parent %s (failed: %v), want %s with parent %s", name, s.Kind, s.Parent, s.Failed, kind, parent)
	}
	for i := 0; i < len(attributes); i += 2 {
		if got := s.Attributes[attributes[i]]; got != attributes[i+1] {
			t.Errorf("%s: %s is %q, want %q", name, attributes[i], got, attributes[i+1])
		}
	}
	return s
}

// One trace contains a call to /mcp on its way from the client through the gateway and a plugin to the app. The app
// gets the trace context. The access log and the audit log contain the trace ID.
func TestOneTraceContainsACallFromTheClientToTheApp(t *testing.T) {
	for _, protocol := range []string{"http/protobuf", "grpc"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			collector := otlptest.Start(t)
			tokens := filepath.Join(t.TempDir(), "tokens.yaml")
			audit := filepath.Join(t.TempDir(), "audit.log")
			harness.WriteFile(t, tokens, "tokens:\n  - {token: the-token-of-alice-1, subject: alice, orgRole: admin, expires: 2099-01-01T00:00:00Z}\n"+
				"  - {token: the-token-of-alice-2, subject: alice, orgRole: admin, expires: 2099-01-01T00:00:00Z}\n")
			s := harness.Serve(t, traced(collector, protocol),
				harness.Config("auth: {adapter: static, audience: any, file: "+tokens+"}\nlog: {access: true}\naudit: {file: "+audit+"}\n"))
			first, second := "Authorization: Bearer the-token-of-alice-1", "Authorization: Bearer the-token-of-alice-2"
			if a := s.Do(t, "POST", "/v1/apps/install", map[string]any{"path": harness.GoBundle(t, "traced", harness.Plain)}, first); a.Status != 200 {
				t.Fatalf("install: %d %s", a.Status, a.Body)
			}
			session := s.SessionHeader(t, first)
			call := `{"jsonrpc":"2.0","id":"call-7","method":"tools/call","params":{"name":"traced__environment","arguments":{}}}`
			// The second token is not in the cache, so the server calls the auth plugin within the trace.
			a := s.Do(t, "POST", "/mcp", call, harness.WorkspaceHeader, harness.AcceptHeader, session, second, "traceparent: "+clientParent)
			if a.Status != 200 {
				t.Fatalf("%d %s", a.Status, a.Body)
			}
			meta := metaOf(t, a.Body)
			s.Stop()

			all := traceOf(t, collector, clientTrace)
			http := all.check(t, "POST /mcp", "SERVER", clientSpan, "http.route", "/mcp", "http.request.method", "POST", "ropewalk.workspace.id", harness.Workspace)
			all.check(t, "ropewalk.auth.v1.AuthService/Verify", "CLIENT", http.ID, "rpc.system.name", "grpc", "rpc.response.status_code", "OK", "ropewalk.plugin.kind", "auth")
			gateway := all.check(t, "tools/call traced__environment", "SERVER", http.ID, "mcp.method.name", "tools/call", "gen_ai.tool.name", "traced__environment",
				"gen_ai.operation.name", "execute_tool", "mcp.session.id", strings.TrimPrefix(session, "Mcp-Session-Id: "), "mcp.protocol.version", "2025-06-18",
				"jsonrpc.request.id", "call-7", "network.transport", "tcp")
			app := all.check(t, "tools/call environment", "CLIENT", gateway.ID, "mcp.method.name", "tools/call", "gen_ai.tool.name", "environment",
				"network.transport", "pipe", "mcp.protocol.version", "2025-11-25", "ropewalk.app.name", "traced")
			if want := "00-" + clientTrace + "-" + app.ID + "-01"; meta["traceparent"] != want {
				t.Errorf("the app got %v, want %s", meta, want)
			}
			if line := lineWith(s.Log.String(), "tool=traced__environment"); !strings.Contains(line, "trace_id="+clientTrace) || !strings.Contains(line, "route=/mcp") {
				t.Errorf("the line in the access log is %q", line)
			}
			records, err := os.ReadFile(audit)
			if err != nil {
				t.Fatal(err)
			}
			if line := lineWith(string(records), `"tools.call"`); !strings.Contains(line, `"traceId":"`+clientTrace+`"`) {
				t.Errorf("the line in the audit log is %q", line)
			}
		})
	}
}

// metaOf returns the _meta that the tool named environment received.
func metaOf(t *testing.T, body string) map[string]any {
	t.Helper()
	var response struct {
		Result struct{ Content []struct{ Text string } }
	}
	var tool struct{ Meta map[string]any }
	if err := json.Unmarshal([]byte(harness.LastMessage(body)), &response); err != nil || len(response.Result.Content) != 1 {
		t.Fatalf("%v in %s", err, body)
	}
	if err := json.Unmarshal([]byte(response.Result.Content[0].Text), &tool); err != nil {
		t.Fatal(err)
	}
	return tool.Meta
}

func lineWith(text, part string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			return line
		}
	}
	return ""
}

// One trace contains a chat run with the calls to the model and to a tool. It contains no text of the conversation.
func TestOneTraceContainsAChatRunWithModelAndToolCalls(t *testing.T) {
	p, collector := testenv.StartModelProvider(t), otlptest.Start(t)
	s := harness.Serve(t, traced(collector, "grpc"), harness.Models(p, "openai"))
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "traced", harness.Plain)})
	harness.ScriptToolCall(t, p, "traced__echo", `{"text":"`+canary+`"}`)
	if a := s.Do(t, "POST", "/v1/chat", `{"message":"go"}`, "traceparent: "+clientParent); a.Status != 200 || !strings.Contains(a.Body, "Done.") {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	s.Stop()
	all := traceOf(t, collector, clientTrace)
	http := all.check(t, "POST /v1/chat", "SERVER", clientSpan)
	run := all.check(t, "invoke_agent ropewalk", "INTERNAL", http.ID, "gen_ai.operation.name", "invoke_agent")
	model := all.check(t, "chat test-model", "CLIENT", run.ID, "gen_ai.operation.name", "chat", "gen_ai.provider.name", "openai", "gen_ai.request.model", "test-model",
		"gen_ai.conversation.id", run.Attributes["gen_ai.conversation.id"])
	if model.Attributes["gen_ai.usage.input_tokens"] == "" || run.Attributes["gen_ai.conversation.id"] == "" {
		t.Errorf("the model's span has %v, the run's %v", model.Attributes, run.Attributes)
	}
	tool := all.check(t, "execute_tool traced__echo", "INTERNAL", run.ID, "gen_ai.operation.name", "execute_tool", "gen_ai.tool.name", "traced__echo", "gen_ai.tool.call.id", "c1")
	all.check(t, "tools/call echo", "CLIENT", tool.ID, "ropewalk.app.name", "traced", "gen_ai.tool.name", "echo")
}
