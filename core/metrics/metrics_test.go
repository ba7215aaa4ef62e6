package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/audit"
	"github.com/ropewalk/ropewalk/core/event"
	"github.com/ropewalk/ropewalk/core/metrics"
	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/store/database"
	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/plugins"
)

// measured returns Metrics in which everything was recorded once.
func measured() *metrics.Metrics {
	m := metrics.New(metrics.Build{Version: "1.2.3", Commit: "abc"})
	m.Request("POST", "/v1/tools/call", 200, 3*time.Millisecond)
	m.Request("BREW", "", 404, time.Millisecond)
	m.ServerOperation("tools/call", "2025-11-25", 0, false, 15*time.Millisecond)
	m.ServerOperation("tools/call", "2025-11-25", 0, true, time.Millisecond)
	m.ServerOperation("invented/by-a-client", "1999-01-01", -32601, false, time.Millisecond)
	m.ServerOperation("tools/call", "2026-07-28", 4711, false, time.Millisecond)
	m.ClientOperation("calc", "tools/call", time.Millisecond, nil)
	m.ClientOperation("calc", "tools/call", time.Millisecond, &rpc.Error{Code: -32602})
	m.ToolCall("calc", "add", false, nil)
	m.ToolCall("calc", "add", true, nil)
	m.ToolCall("calc", "add", false, core.Errorf(core.CodeUnavailable, "x"))
	m.ToolCall("", "", false, core.Errorf(core.CodeToolNotFound, "x"))
	m.ToolCall("calc", "add", false, context.Canceled)
	m.AppStart("calc", time.Second, nil)
	m.AppStart("calc", time.Second, errors.New("x"))
	m.AppRestart("calc")
	m.AppDeath("calc")
	m.AppWakeUp("calc")
	m.PluginCall(plugins.KindAuth, "oidc", "oidc", time.Millisecond, nil)
	m.PluginCall(plugins.KindAuth, "oidc", "oidc", time.Millisecond, plugins.ErrUnavailable)
	m.ChatRun("complete", time.Second)
	cost := 0.25
	m.ModelCall(core.Usage{Model: "anthropic:claude", InputTokens: 100, OutputTokens: 20, CostUSD: &cost, LLM: time.Second, User: "usr_1"}, false)
	m.DatabaseCall("sqlite", "write", time.Millisecond, nil)
	m.AddSources(metrics.Sources{
		Started: time.Now(),
		Plugins: func() []pluginhost.Status {
			return []pluginhost.Status{
				{Kind: plugins.KindAuth, Name: "oidc", Adapter: "oidc", State: "running", Restarts: 2, Calls: 40, Failures: 1},
				{Kind: plugins.KindRegistry, Name: "local", Adapter: "directory", State: pluginhost.Restarting},
			}
		},
		Providers: func() map[string]bool { return map[string]bool{"oidc": false} },
		Apps:      func() map[core.State]int { return map[core.State]int{core.StateRunning: 5} },
		Asleep:    func() int { return 1 },
		AppCalls:  func() map[string]int { return map[string]int{"calc": 2} },
		Sessions:  func() int { return 3 }, Streams: func() int { return 4 },
		Events:   func() event.Stats { return event.Stats{Readers: 1, Queued: 2, Dropped: 3} },
		Audit:    func() []audit.Status { return []audit.Status{{Sink: "siem", Waiting: 6, Lost: 7}} },
		Database: func() database.Stats { return database.Stats{Open: 5, InUse: 1, Waits: 7, Waited: time.Second} },
	})
	return m
}

func text(t *testing.T, m *metrics.Metrics) string {
	t.Helper()
	text, err := m.Text()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestEachMetricHasItsConventionalName(t *testing.T) {
	written := text(t, measured())
	for _, want := range []string{
		`ropewalk_build_info{commit="abc",goversion="go1.`,
		`http_server_request_duration_seconds_count{http_request_method="POST",http_response_status_code="200",http_route="/v1/tools/call"} 1`,
		`http_server_request_duration_seconds_count{http_request_method="_OTHER",http_response_status_code="404",http_route=""} 1`,
		`mcp_server_operation_duration_seconds_bucket{error_type="",mcp_method_name="tools/call",mcp_protocol_version="2025-11-25",le="0.02"} 1`,
		`mcp_server_operation_duration_seconds_count{error_type="tool_error",mcp_method_name="tools/call",mcp_protocol_version="2025-11-25"} 1`,
		`mcp_server_operation_duration_seconds_count{error_type="-32601",mcp_method_name="_OTHER",mcp_protocol_version="_OTHER"} 1`,
		`mcp_server_operation_duration_seconds_count{error_type="_OTHER",mcp_method_name="tools/call",mcp_protocol_version="2026-07-28"} 1`,
		`mcp_client_operation_duration_seconds_count{app="calc",error_type="",mcp_method_name="tools/call"} 1`,
		`mcp_client_operation_duration_seconds_count{app="calc",error_type="-32602",mcp_method_name="tools/call"} 1`,
		`ropewalk_tool_calls_total{app="calc",outcome="ok",tool="add"} 1`,
		`ropewalk_tool_calls_total{app="calc",outcome="tool_error",tool="add"} 1`,
		`ropewalk_tool_calls_total{app="calc",outcome="unavailable",tool="add"} 1`,
		`ropewalk_tool_calls_total{app="calc",outcome="cancelled",tool="add"} 1`,
		`ropewalk_tool_calls_total{app="",outcome="tool_not_found",tool=""} 1`,
		`ropewalk_app_start_duration_seconds_count{app="calc",outcome="ok"} 1`,
		`ropewalk_app_start_duration_seconds_count{app="calc",outcome="failed"} 1`,
		`ropewalk_app_restarts_total{app="calc"} 1`, `ropewalk_app_deaths_total{app="calc"} 1`, `ropewalk_app_wakeups_total{app="calc"} 1`,
		`ropewalk_plugin_call_duration_seconds_count{adapter="oidc",kind="auth",name="oidc",outcome="answered"} 1`,
		`ropewalk_plugin_call_duration_seconds_count{adapter="oidc",kind="auth",name="oidc",outcome="unavailable"} 1`,
		`ropewalk_chat_run_duration_seconds_count{outcome="complete"} 1`,
		`gen_ai_client_operation_duration_seconds_count{error_type="",gen_ai_operation_name="chat",gen_ai_provider_name="anthropic",gen_ai_request_model="claude"} 1`,
		`gen_ai_client_token_usage_sum{gen_ai_operation_name="chat",gen_ai_provider_name="anthropic",gen_ai_request_model="claude",gen_ai_token_type="input"} 100`,
		`gen_ai_client_token_usage_sum{gen_ai_operation_name="chat",gen_ai_provider_name="anthropic",gen_ai_request_model="claude",gen_ai_token_type="output"} 20`,
		`ropewalk_chat_cost_usd_total{gen_ai_provider_name="anthropic",gen_ai_request_model="claude"} 0.25`,
		`db_client_operation_duration_seconds_count{db_operation_name="write",db_system_name="sqlite",error_type=""} 1`,
		`ropewalk_audit_records_waiting{sink="siem"} 6`, `ropewalk_audit_records_lost_total{sink="siem"} 7`, `ropewalk_mcp_sessions 3`, `ropewalk_http_streams 4`, `ropewalk_event_readers 1`, `ropewalk_event_queue_length 2`, `ropewalk_events_dropped_total 3`,
		`ropewalk_database_connections 5`, `ropewalk_database_connections_in_use 1`, `ropewalk_database_connection_waits_total 7`,
		`ropewalk_apps{state="running"} 5`, `ropewalk_apps{state="dead"} 0`, `ropewalk_app_calls_pending{app="calc"} 2`,
		`ropewalk_plugin_up{adapter="oidc",kind="auth",name="oidc"} 1`,
		`ropewalk_identity_provider_up{name="oidc"} 0`,
		`ropewalk_plugin_up{adapter="directory",kind="registry",name="local"} 0`,
		`ropewalk_plugin_restarts_total{adapter="oidc",kind="auth",name="oidc"} 2`,
		`ropewalk_plugin_calls_total{adapter="oidc",kind="auth",name="oidc"} 40`,
		`ropewalk_plugin_failures_total{adapter="oidc",kind="auth",name="oidc"} 1`,
		"# TYPE ropewalk_plugin_restarts_total counter", "go_goroutines", "process_",
	} {
		if !strings.Contains(written, want) {
			t.Errorf("%s is missing in:\n%s", want, written)
		}
	}
	if strings.Contains(written, "usr_1") {
		t.Error("a label contains a user's id")
	}
}

func TestTheMetricsSatisfyPromtool(t *testing.T) {
	promtool := testenv.Program(t, "promtool")
	cmd := exec.CommandContext(t.Context(), promtool, "check", "metrics")
	cmd.Stdin = strings.NewReader(text(t, measured()))
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
}

func TestLabelsHaveALimitedNumberOfValues(t *testing.T) {
	m := metrics.New(metrics.Build{})
	for i := range 5000 {
		m.ToolCall("app", fmt.Sprintf("tool-%d", i), false, nil)
		m.ClientOperation(fmt.Sprintf("app-%d", i), "tools/call", time.Millisecond, nil)
		m.ModelCall(core.Usage{Model: fmt.Sprintf("vendor:model-%d", i)}, false)
	}
	written := text(t, m)
	for name, most := range map[string]int{
		"ropewalk_tool_calls_total{": 2001, "mcp_client_operation_duration_seconds_count{": 501, "gen_ai_client_operation_duration_seconds_count{": 101,
	} {
		if n := strings.Count(written, name); n > most || n < 100 {
			t.Errorf("%s has %d sets of labels, want at most %d", name, n, most)
		}
	}
	if !strings.Contains(written, `ropewalk_tool_calls_total{app="app",outcome="ok",tool="_OTHER"} 3`) {
		t.Error("calls to tools beyond the limit should be counted together")
	}
}

func TestTheMetricsAreServedOnASeparateAddress(t *testing.T) {
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serving := measured().Listen(l, hclog.NewNullLogger())
	for path, want := range map[string]int{"/metrics": 200, "/v1/apps": 404, "/": 404} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+serving.Addr().String()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != want || want == 200 && !strings.Contains(string(body), "ropewalk_build_info{") {
			t.Errorf("%s: %d %v", path, r.StatusCode, err)
		}
		_ = r.Body.Close()
	}
	http.DefaultClient.CloseIdleConnections()
	if err := serving.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func BenchmarkAToolCall(b *testing.B) {
	m := metrics.New(metrics.Build{})
	b.ReportAllocs()
	for b.Loop() {
		m.Request("POST", "/mcp", 200, time.Millisecond)
		m.ServerOperation("tools/call", "2025-11-25", 0, false, time.Millisecond)
		m.ToolCall("calc", "add", false, nil)
		m.ClientOperation("calc", "tools/call", time.Millisecond, nil)
	}
}
