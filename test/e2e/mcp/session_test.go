package mcp

import (
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

func TestASessionHasOnlyOneStream(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	session := s.SessionHeader(t)
	stream, hangUp := s.OpenStream(t, session)
	if stream != 200 {
		t.Fatalf("GET: %d", stream)
	}
	again, _ := s.OpenStream(t, session)
	if again != 200 {
		t.Errorf("a second GET, which replaces the first: %d", again)
	}
	hangUp()
	if third, _ := s.OpenStream(t, session); third != 200 {
		t.Errorf("a new GET after one was dropped: %d", third)
	}
}

func TestTheSessionLimitIsExact(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.Env("MCP_MAX_SESSIONS=2"))
	first := s.SessionHeader(t)
	s.SessionHeader(t)
	full := s.Do(t, "POST", "/mcp", harness.Initialize, harness.AcceptHeader, harness.WorkspaceHeader)
	if full.Status != 429 || full.Header.Get("Retry-After") == "" || full.Header.Get("Mcp-Session-Id") != "" ||
		!strings.Contains(full.Body, `"code":-32000`) || !strings.HasSuffix(full.Body, `"id":null}`) {
		t.Errorf("the third session: %d %v %s", full.Status, full.Header, full.Body)
	}
	if a := s.Do(t, "DELETE", "/mcp", nil, harness.WorkspaceHeader, first); a.Status != 200 {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	s.SessionHeader(t)
}

func TestOnlyIdleSessionsEnd(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.Env("MCP_SESSION_TTL_SECONDS=6"))
	idle, used := s.SessionHeader(t), s.SessionHeader(t)
	opened := time.Now()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for time.Since(opened) < 15*time.Second {
		<-tick.C
		if a := s.Do(t, "POST", "/mcp", harness.Ping, harness.AcceptHeader, harness.WorkspaceHeader, used); a.Status != 200 {
			t.Fatalf("a session in use, after %v: %d %s", time.Since(opened), a.Status, a.Body)
		}
	}
	checkResponses(t, s, []request{{"an idle session", "POST", harness.Ping, []string{harness.AcceptHeader, harness.WorkspaceHeader, idle}, 404, "=" + harness.SessionNotFound("not_found")}})
}

func TestASessionInADurableStoreContinuesAfterARestart(t *testing.T) {
	t.Parallel()
	redis := testenv.StartRedis(t)
	s := harness.Serve(t, harness.Config(`sessionStore: {adapter: redis, url: "redis://`+redis.Addr+`/0"}`))
	session := s.SessionHeader(t)
	s.Stop()
	s.Start()
	checkResponses(t, s, []request{
		{"a session from before the restart", "POST", harness.Ping, []string{harness.AcceptHeader, harness.WorkspaceHeader, session}, 200, `"result":{}`},
	})
	stream, hangUp := s.OpenStream(t, session)
	if stream != 200 {
		t.Errorf("the session's stream: %d", stream)
	}
	hangUp()
	checkResponses(t, s, []request{
		{"ending the session", "DELETE", nil, []string{harness.WorkspaceHeader, session}, 200, ""},
		{"the session after it has ended", "POST", harness.Ping, []string{harness.AcceptHeader, harness.WorkspaceHeader, session}, 404, "=" + harness.SessionNotFound("not_found")},
	})
}
