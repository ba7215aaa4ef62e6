package mcp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

type audited struct {
	*harness.Server
	file string
}

func serveAudited(t *testing.T, settings string) audited {
	t.Helper()
	file := filepath.Join(t.TempDir(), "audit.log")
	return audited{harness.Serve(t, harness.Config("audit: {file: "+file+"}\n"+settings)), file}
}

// trail returns the records whose target contains a text, in order.
func (a audited) trail(t *testing.T, target string) (found []core.AuditRecord) {
	t.Helper()
	raw, err := os.ReadFile(a.file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		var entry struct{ Record core.AuditRecord }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if strings.Contains(entry.Record.Target, target) {
			found = append(found, entry.Record)
		}
	}
	return found
}

// outcomes returns the actions and outcomes recorded for a target. The record at the end of an action must have a
// duration, and the request ID of the record at its start.
func (a audited) outcomes(t *testing.T, target string) (all []string) {
	t.Helper()
	begun := map[string]core.AuditRecord{}
	for _, r := range a.trail(t, target) {
		all = append(all, r.Action+" "+r.Outcome)
		if action, ended := strings.CutSuffix(r.Action, ".ended"); ended {
			if b := begun[action+r.RequestID]; r.RequestID == "" || r.Address == "" || r.Duration <= 0 || b.Target != r.Target || b.Duration != 0 {
				t.Errorf("%+v ends %+v", r, b)
			}
		} else {
			begun[r.Action+r.RequestID] = r
		}
	}
	return all
}

func (a audited) check(t *testing.T, target string, want ...string) {
	t.Helper()
	if got := a.outcomes(t, target); !slices.Equal(got, want) {
		t.Errorf("recorded for %s: %q, want %q", target, got, want)
	}
}

// post sends a message as a client with the given protocol revision. It returns the response body.
func (a audited) post(t *testing.T, revision, method, name, params string) string {
	t.Helper()
	headers := []string{harness.WorkspaceHeader, harness.AcceptHeader}
	meta := ""
	if revision == "2026-07-28" {
		meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}},"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}}`
		headers = append(headers, "MCP-Protocol-Version: 2026-07-28", "Mcp-Method: "+method, "Mcp-Name: "+name)
	} else {
		headers = append(headers, a.SessionHeader(t))
	}
	response := a.Do(t, "POST", "/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s%s}}`, method, params, meta), headers...)
	if response.Status != http.StatusOK {
		t.Errorf("%s: %d %s", method, response.Status, response.Body)
	}
	return response.Body
}

func TestEveryRequestToAnAppIsRecordedBeforeItStartsAndAfterItEnds(t *testing.T) {
	t.Parallel()
	a := serveAudited(t, "")
	a.Install(t, map[string]any{"path": harness.GoBundle(t, "offer", harness.Offering)})
	for _, revision := range []string{"2025-06-18", "2026-07-28"} {
		a.post(t, revision, "tools/call", "offer__echo", `"name":"offer__echo","arguments":{"text":"x"}`)
		a.post(t, revision, "prompts/get", "offer__ask", `"name":"offer__ask"`)
		a.post(t, revision, "completion/complete", "", `"ref":{"type":"ref/prompt","name":"offer__ask"},"argument":{"name":"a","value":"o"}`)
		a.post(t, revision, "resources/read", "ui://offer/view", `"uri":"ui://offer/view"`)
	}
	call := []string{"tools.call allowed", "tools.call.ended ok"}
	a.check(t, "offer__echo", slices.Repeat(call, 2)...)
	a.check(t, "offer__ask", slices.Repeat([]string{"prompts.get allowed", "prompts.get.ended ok", "completion.complete allowed", "completion.complete.ended ok"}, 2)...)
	a.check(t, "ui://", slices.Repeat([]string{"resources.read allowed", "resources.read.ended ok"}, 2)...)

	a.Call(t, "offer", "echo", map[string]any{"text": "x"})
	a.check(t, "offer__echo", slices.Repeat(call, 3)...)
	if view := a.Do(t, "GET", "/v1/apps/offer/resources/ui%3A%2F%2Foffer%2Fview", nil); view.Status != http.StatusOK {
		t.Errorf("the view: %d %s", view.Status, view.Body)
	}
	a.check(t, "ui://", slices.Repeat([]string{"resources.read allowed", "resources.read.ended ok"}, 3)...)
	a.Call(t, "system", "list_apps", nil)
	a.check(t, "system__list_apps", call...)
}

func TestACallToAnAppThatIsStartingIsRecordedAsAllowed(t *testing.T) {
	t.Parallel()
	a := serveAudited(t, "")
	a.Install(t, map[string]any{"path": harness.GoBundle(t, "offer", harness.Offering)})
	if r := a.Do(t, "POST", "/v1/apps/offer/stop", nil); r.Status != http.StatusOK {
		t.Fatalf("stop: %d %s", r.Status, r.Body)
	}
	shut := a.SharedFile("offer", harness.ShutFile)
	harness.WriteFile(t, shut, "")
	responses := make(chan harness.Response, 2)
	go func() { responses <- a.Do(t, "POST", "/v1/apps/offer/start", nil) }()
	a.WaitForStatus(t, "offer", "starting")
	go func() {
		responses <- a.Do(t, "POST", "/v1/tools/call", map[string]any{"server": "offer", "tool": "echo", "arguments": map[string]any{"text": "x"}})
	}()
	for range 20 { // gives the call time to reach the server
		a.Do(t, "GET", "/v1/health", nil)
	}
	if err := os.Remove(shut); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if r, _ := testkit.Receive(t, "an answer", responses); r.Status != http.StatusOK {
			t.Errorf("%d %s", r.Status, r.Body)
		}
	}
	a.check(t, "offer__echo", "tools.call allowed", "tools.call.ended ok")
}

func TestARefusedCallToASystemToolIsRecordedAsRefused(t *testing.T) {
	t.Parallel()
	a := serveAudited(t, "features: {bundleManagement: false}\n")
	a.Do(t, "POST", "/v1/tools/call", map[string]any{"server": "system", "tool": "manage_apps", "arguments": map[string]any{"action": "stop", "name": "x"}})
	a.check(t, "system__manage_apps", "tools.call feature_disabled")
	a.Do(t, "POST", "/v1/tools/call", map[string]any{"server": "system", "tool": "list_apps", "arguments": map[string]any{"no": 1}})
	a.check(t, "system__list_apps", "tools.call invalid_input")
}

func TestACallThatAsksAQuestionIsRecordedAsTwoCalls(t *testing.T) {
	t.Parallel()
	a := serveAudited(t, "")
	a.Install(t, map[string]any{"path": harness.GoBundle(t, "asker", harness.AskingInSessions)})
	var response struct {
		Result struct {
			State    string                     `json:"requestState"`
			Requests map[string]json.RawMessage `json:"inputRequests"`
		} `json:"result"`
	}
	first := a.post(t, "2026-07-28", "tools/call", "asker__ask", `"name":"asker__ask","arguments":{"text":"who?"}`)
	if err := json.Unmarshal([]byte(harness.LastMessage(first)), &response); err != nil || len(response.Result.Requests) != 1 {
		t.Fatalf("%v in %s", err, first)
	}
	for name := range response.Result.Requests {
		second := a.post(t, "2026-07-28", "tools/call", "asker__ask", fmt.Sprintf(
			`"name":"asker__ask","arguments":{"text":"who?"},"requestState":%q,"inputResponses":{%q:{"action":"accept","content":{"name":"Ada"}}}`, response.Result.State, name))
		if !strings.Contains(second, "Ada") {
			t.Errorf("the resumed call: %s", second)
		}
	}
	a.check(t, "asker__ask", "tools.call allowed", "tools.call.ended input_required", "tools.call allowed", "tools.call.ended ok")
}
