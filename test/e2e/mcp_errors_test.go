package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/internal/testenv"
)

// The headers of a well-behaved MCP client.
var (
	inWorkspace = "X-Workspace-Id: " + workspace
	takesBoth   = "Accept: application/json, text/event-stream"
)

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// open opens a session of a well-behaved client and returns the header that names it.
func (s *server) open(t *testing.T, headers ...string) string {
	t.Helper()
	a := s.do(t, "POST", "/mcp", initialize, append([]string{inWorkspace, takesBoth}, headers...)...)
	id := a.header.Get("Mcp-Session-Id")
	if a.status != 200 || len(id) < 22 { // 128 random bits in base 64 are 22 characters
		t.Fatalf("initialize: %d %q %s", a.status, id, a.body)
	}
	return "Mcp-Session-Id: " + id
}

func notFound(reason string) string {
	return `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Session not found","data":{"reason":"` + reason + `"}},"id":null}`
}

// request is one row of the table of /mcp: which headers and which body give which status, and a
// part of the answer ("=" in front: the whole).
type request struct {
	what    string
	method  string
	body    any
	headers []string
	status  int
	says    string
}

func (s *server) answers(t *testing.T, table []request) {
	t.Helper()
	for _, r := range table {
		t.Run(fmt.Sprintf("%d %s", r.status, r.what), func(t *testing.T) {
			a := s.do(t, r.method, "/mcp", r.body, r.headers...)
			whole, exact := strings.CutPrefix(r.says, "=")
			if a.status != r.status || exact && a.body != whole || !exact && !strings.Contains(a.body, r.says) {
				t.Errorf("%d %s", a.status, a.body)
			}
			if a.header.Get("X-Content-Type-Options") != "nosniff" || a.header.Get("X-Request-Id") == "" {
				t.Errorf("headers %v", a.header)
			}
		})
	}
}

func TestRefusalsOfMCP(t *testing.T) {
	t.Parallel()
	s := serve(t)
	session := s.open(t)
	const jsonError = `"error":{"code":-32000,`
	s.answers(t, []request{
		{"no workspace, though there is but one", "POST", initialize, []string{takesBoth}, 400, "GET /v1/workspace"},
		{"no workspace on a GET", "GET", nil, []string{takesBoth, session}, 400, "X-Workspace-Id"},
		{"no workspace on a DELETE", "DELETE", nil, []string{session}, 400, "X-Workspace-Id"},
		{"a malformed workspace", "POST", initialize, []string{takesBoth, "X-Workspace-Id: default"}, 400, "ws_"},
		{"a workspace of others", "POST", initialize, []string{takesBoth, "X-Workspace-Id: ws_others"}, 403, jsonError},
		{"a page of another site", "POST", initialize, []string{takesBoth, inWorkspace, "Origin: https://evil.example"}, 403, "Origin"},
		{"a rebound name", "POST", initialize, []string{takesBoth, inWorkspace, "Host: evil.example"}, 403, "Host"},
		{"a method of its own", "PUT", initialize, []string{takesBoth, inWorkspace}, 405, ""},
		{"a body over the limit", "POST", strings.Repeat(" ", 5<<20) + initialize, []string{takesBoth, inWorkspace}, 413, ""},
		{"a body of another type", "POST", initialize, []string{takesBoth, inWorkspace, "Content-Type: text/plain"}, 415, "application/json"},
		{"a client that takes no streams", "POST", initialize, []string{"Accept: application/json", inWorkspace}, 406, "text/event-stream"},
		{"a GET that takes no stream", "GET", nil, []string{"Accept: application/json", inWorkspace, session}, 406, "text/event-stream"},
		{"no session", "POST", ping, []string{takesBoth, inWorkspace}, 400, `"id":null`},
		{"no session on a GET", "GET", nil, []string{takesBoth, inWorkspace}, 400, "Mcp-Session-Id"},
		{"no session on a DELETE", "DELETE", nil, []string{inWorkspace}, 400, "Mcp-Session-Id"},
		{"what is no JSON", "POST", `{"jsonrpc":`, []string{takesBoth, inWorkspace, session}, 400, `"code":-32700`},
		{"a revision nobody speaks", "POST", ping, []string{takesBoth, inWorkspace, session, "Mcp-Protocol-Version: 1999-01-01"}, 400, "2025-06-18"},
		{"a session that never was", "POST", ping, []string{takesBoth, inWorkspace, "Mcp-Session-Id: NEVERWASSUCHASESSION0000000"}, 404, "=" + notFound("not_found")},
		{"a stream of one that never was", "GET", nil, []string{takesBoth, inWorkspace, "Mcp-Session-Id: NEVERWASSUCHASESSION0000000"}, 404, "=" + notFound("not_found")},
		{"the end of one that never was", "DELETE", nil, []string{inWorkspace, "Mcp-Session-Id: NEVERWASSUCHASESSION0000000"}, 404, "=" + notFound("not_found")},
		{"a method is unknown", "POST", `{"jsonrpc":"2.0","id":1,"method":"nothing"}`, []string{takesBoth, inWorkspace, session}, 200, `"code":-32601`},
		{"a ping", "POST", ping, []string{takesBoth, inWorkspace, session}, 200, `=` + `{"jsonrpc":"2.0","id":1,"result":{}}`},
		{"a notification", "POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, []string{takesBoth, inWorkspace, session}, 202, "="},
		{"the end of the session", "DELETE", nil, []string{inWorkspace, session}, 200, "="},
		{"a session that has ended", "POST", ping, []string{takesBoth, inWorkspace, session}, 404, "=" + notFound("not_found")},
		{"the end of one that has ended", "DELETE", nil, []string{inWorkspace, session}, 404, "=" + notFound("not_found")},
	})
	if a := s.do(t, "PUT", "/mcp", nil, inWorkspace); a.header.Get("Allow") != "GET, POST, DELETE" {
		t.Errorf("Allow %q", a.header.Get("Allow"))
	}
}

func TestMCPTakesNoAPIKey(t *testing.T) {
	t.Parallel()
	s := serve(t, env("SERVICE_API_KEY="+apiKey))
	for _, proof := range []string{"Accept: */*", "Authorization: Bearer " + apiKey, "Authorization: Basic eA=="} {
		for _, method := range []string{"POST", "GET", "DELETE"} {
			a := s.do(t, method, "/mcp", nil, inWorkspace, takesBoth, proof)
			want := `Bearer error="unauthorized", error_description="Authorization required", resource_metadata="` + s.url + `/.well-known/oauth-protected-resource"`
			if a.status != 401 || a.header.Get("WWW-Authenticate") != want {
				t.Errorf("%s with %s: %d %q", method, proof, a.status, a.header.Get("WWW-Authenticate"))
			}
		}
	}
	if !strings.Contains(s.log.String(), "auth.adapter") {
		t.Error("the log does not say which setting opens /mcp")
	}
	for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"} {
		a := s.do(t, "GET", path, nil, "X-Forwarded-Proto: https")
		o := a.object(t)
		if resource, _ := o["resource"].(string); a.status != 200 || !strings.HasPrefix(resource, "https://127.0.0.1:") || toText(t, o["bearer_methods_supported"]) != `["header"]` {
			t.Errorf("%s behind a proxy: %d %s", path, a.status, a.body)
		}
	}
}

func TestMCPIsNotThereWhenItsFlagIsOff(t *testing.T) {
	t.Parallel()
	s := serve(t, config("features: {mcpServer: false}\n"))
	for _, method := range []string{"POST", "GET", "DELETE", "PUT"} {
		if a := s.do(t, method, "/mcp", nil); a.status != 404 || a.body != "Not found" {
			t.Errorf("%s: %d %q", method, a.status, a.body)
		}
	}
}

func TestOneStreamForEachSession(t *testing.T) {
	t.Parallel()
	s := serve(t)
	session := s.open(t)
	stream, hangUp := s.stream(t, session)
	if stream != 200 {
		t.Fatalf("GET: %d", stream)
	}
	s.answers(t, []request{{"a second stream", "GET", nil, []string{takesBoth, inWorkspace, session}, 409, "already open"}})
	hangUp()
	again, _ := s.stream(t, session)
	if again != 200 {
		t.Errorf("a new GET after the first one was dropped: %d", again)
	}
}

func TestTheCapOfSessionsIsExact(t *testing.T) {
	t.Parallel()
	s := serve(t, env("MCP_MAX_SESSIONS=2"))
	first := s.open(t)
	s.open(t)
	full := s.do(t, "POST", "/mcp", initialize, takesBoth, inWorkspace)
	if full.status != 429 || full.header.Get("Retry-After") == "" || full.header.Get("Mcp-Session-Id") != "" ||
		!strings.Contains(full.body, `"code":-32000`) || !strings.HasSuffix(full.body, `"id":null}`) {
		t.Errorf("the third session: %d %v %s", full.status, full.header, full.body)
	}
	if a := s.do(t, "DELETE", "/mcp", nil, inWorkspace, first); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
	s.open(t)
}

func TestAnIdleSessionEndsAndOneInUseDoesNot(t *testing.T) {
	t.Parallel()
	s := serve(t, env("MCP_SESSION_TTL_SECONDS=1"))
	idle, used := s.open(t), s.open(t)
	opened := time.Now()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for time.Since(opened) < 2500*time.Millisecond {
		<-tick.C
		if a := s.do(t, "POST", "/mcp", ping, takesBoth, inWorkspace, used); a.status != 200 {
			t.Fatalf("a session in use, after %v: %d %s", time.Since(opened), a.status, a.body)
		}
	}
	s.answers(t, []request{{"an idle session", "POST", ping, []string{takesBoth, inWorkspace, idle}, 404, "=" + notFound("not_found")}})
}

func TestASessionOfAnotherProcessIsUnavailable(t *testing.T) {
	t.Parallel()
	redis := testenv.StartRedis(t)
	s := serve(t, config(`sessionStore: {adapter: redis, url: "redis://`+redis.Addr+`/0"}`))
	session := s.open(t)
	s.terminate()
	s.start()
	s.answers(t, []request{
		{"a session from before the new start", "POST", ping, []string{takesBoth, inWorkspace, session}, 404, "=" + notFound("unavailable")},
		{"its stream", "GET", nil, []string{takesBoth, inWorkspace, session}, 404, "=" + notFound("unavailable")},
		{"its end", "DELETE", nil, []string{inWorkspace, session}, 404, "=" + notFound("unavailable")},
	})
}
