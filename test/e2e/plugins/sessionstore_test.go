package plugins

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

func TestAServerTakesOverAnotherServersSessionUntilItExpires(t *testing.T) {
	t.Parallel()
	redis := testenv.StartRedis(t)
	settings := harness.Config("sessionStore: {adapter: redis, url: \"redis://" + redis.Addr + "/0\"}\n")
	a := harness.Serve(t, harness.Flags("--sample"), settings, harness.Env("MCP_SESSION_TTL_SECONDS=15"))
	b := harness.Serve(t, harness.Flags("--sample"), settings, harness.Env("MCP_SESSION_TTL_SECONDS=15"))
	a.WaitForStatus(t, "sample", "running")
	reason := func(s *harness.Server, session string) string {
		t.Helper()
		status, _, body, err := (&harness.MCPClient{URL: s.URL, Session: session}).Post(t.Context(), `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
		if err != nil {
			t.Fatal(err)
		}
		var refusal struct {
			Error struct {
				Code    int
				Message string
				Data    struct{ Reason string }
			}
		}
		if status == http.StatusNotFound && json.Unmarshal(body, &refusal) == nil && refusal.Error.Code == -32000 && refusal.Error.Message == "Session not found" {
			return refusal.Error.Data.Reason
		}
		return fmt.Sprintf("%d %s", status, body)
	}
	c := a.OpenSession(t)
	if got := reason(b, c.Session); !strings.HasPrefix(got, "200") {
		t.Errorf("a session of the other server: %s", got)
	}
	if got := reason(b, "NEVERWASSUCHASESSION0000000"); got != "not_found" {
		t.Errorf("a session that never existed: %s", got)
	}
	if !testkit.Within(harness.Timeout, func() bool { return strings.Contains(b.Do(t, "GET", "/v1/metrics", nil).Body, "mcp_sessions 0\n") }) {
		t.Error("the session did not expire")
	}
	if got := reason(b, c.Session); got != "not_found" {
		t.Errorf("after the session expired, the other server returns %s", got)
	}
	if got := reason(a, c.Session); got != "not_found" {
		t.Errorf("after the session expired, the server that opened it returns %s", got)
	}

	local := a.OpenSession(t)
	redis.Stop()
	if got := reason(a, "NEVERWASSUCHASESSION0000000"); !strings.HasPrefix(got, "503") {
		t.Errorf("an unknown session while the store is down: %s", got)
	}
	if _, err := local.Echo(t.Context(), "local"); err != nil {
		t.Errorf("a local session while the store is down: %v", err)
	}
}
