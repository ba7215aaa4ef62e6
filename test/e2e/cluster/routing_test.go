package cluster

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// toolsCall returns the message for a tool call in a session.
func toolsCall(name, arguments string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","arguments":` + arguments + `}}`
}

// statelessCall returns the body and the headers of a tool call without a session (MCP 2026-07-28).
func statelessCall(name, arguments string) (body string, headers []string) {
	body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","arguments":` + arguments +
		`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	return body, []string{harness.WorkspaceHeader, harness.AcceptHeader, "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: " + name}
}

func testSessionRouting(t *testing.T, d *cluster) {
	of := map[string]int{}
	for range 12 {
		session := d.proxy.SessionHeader(t)
		name, _, _ := strings.Cut(strings.TrimPrefix(session, "Mcp-Session-Id: "), "-")
		of[name]++
		for range 5 {
			a := d.proxy.Do(t, "POST", "/mcp", toolsCall("worker__work", `{"text":"in a session"}`), harness.WorkspaceHeader, harness.AcceptHeader, session)
			if a.Status != 200 {
				t.Fatalf("%d %s", a.Status, a.Body)
			}
			if got := d.serverOf(t, a.Body); got != name {
				t.Fatalf("a call in the session %s was answered by %s", session, got)
			}
		}
		if a := d.proxy.Do(t, "DELETE", "/mcp", nil, harness.WorkspaceHeader, session); a.Status != 200 {
			t.Errorf("ending a session: %d %s", a.Status, a.Body)
		}
	}
	t.Logf("12 sessions were opened on %v", of)
	if len(of) != len(d.servers) {
		t.Errorf("not all servers got sessions: %v", of)
	}
}

func testStatelessSpread(t *testing.T, d *cluster) {
	of := map[string]int{}
	body, headers := statelessCall("worker__work", `{"text":"without a session"}`)
	for range 30 {
		a := d.proxy.Do(t, "POST", "/mcp", body, headers...)
		if a.Status != http.StatusOK {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		of[d.serverOf(t, a.Body)]++
	}
	t.Logf("30 calls without sessions were answered by %v", of)
	for _, name := range serverNames {
		if of[name] < 5 {
			t.Errorf("30 calls without sessions were answered by %v", of)
		}
	}
}

// callAsker calls the tool named ask through a server.
func callAsker(t *testing.T, s *harness.Server, id, more string) map[string]any {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"asker__ask","arguments":{"text":"who?"}` + more +
		`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`
	_, headers := statelessCall("asker__ask", "")
	a := s.Do(t, "POST", "/mcp", body, append(headers, "X-Request-Id: "+id)...)
	result, ok := a.Object(t)["result"].(map[string]any)
	if a.Status != 200 || !ok {
		t.Fatalf("%s: %d %s", id, a.Status, a.Body)
	}
	return result
}

// answerAsker answers the question that callAsker returned. It checks that the app received the answer.
func answerAsker(t *testing.T, s *harness.Server, id string, asked map[string]any) {
	t.Helper()
	questions, _ := asked["inputRequests"].(map[string]any)
	if len(questions) != 1 {
		t.Fatalf("the app did not ask: %s", harness.ToText(t, asked))
	}
	for name := range questions {
		output := callAsker(t, s, id, fmt.Sprintf(`,"requestState":%q,"inputResponses":{%q:{"action":"accept","content":{"name":"Ada %s"}}}`, asked["requestState"], name, id))
		if text := harness.ToText(t, output["content"]); !strings.Contains(text, "Ada "+id) {
			t.Errorf("the app got %s", text)
		}
	}
}

// testStatelessQuestions calls an app whose process waits for an answer on one of the servers. The client may send the
// answer to any server.
func testStatelessQuestions(t *testing.T, d *cluster) {
	d.servers[2].Install(t, map[string]any{"path": harness.GoBundle(t, "asker", harness.AskingInSessions)})
	for _, s := range d.servers {
		s.WaitForStatus(t, "asker", "running")
	}
	for i := range 6 {
		asked := callAsker(t, d.proxy, fmt.Sprint("ask-", i), "")
		answerAsker(t, d.proxy, fmt.Sprint("answer-", i), asked)
	}
	to, elsewhere := map[string]string{}, 0
	for _, f := range d.nginx.Forwarded(t) {
		to[f.ID] = f.Upstream
	}
	for i := range 6 {
		if to[fmt.Sprint("ask-", i)] != to[fmt.Sprint("answer-", i)] {
			elsewhere++
		}
	}
	t.Logf("%d of 6 answers went to a different server than the question's", elsewhere)
	if elsewhere == 0 {
		t.Error("every answer went to the server that asked, so the test proves nothing")
	}
	if a := d.proxy.Do(t, "DELETE", "/v1/apps/asker", nil); a.Status != 200 {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}

func testOfficialClients(t *testing.T, d *cluster) {
	d.servers[0].Install(t, map[string]any{"path": harness.PackedBundle(t, harness.Everything, harness.NodeManifest("everything", harness.Everything, "stdio"))})
	installed := time.Now()
	for _, s := range d.servers {
		s.WaitForStatus(t, "everything", "running")
	}
	t.Logf("a published app with all its packages ran on all servers after %v", time.Since(installed).Round(time.Millisecond))
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) { harness.CheckSecondClient(t, d.proxy.URL, revision) })
	}
	if a := d.proxy.Do(t, "DELETE", "/v1/apps/everything", nil); a.Status != 200 {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}
