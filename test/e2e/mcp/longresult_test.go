package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// kept is the part of a result that describes the stored full text.
type kept struct {
	Content []struct{ Type, Text string }
	Result  json.RawMessage
	Meta    struct {
		Kept struct {
			URI        string
			Characters int
		} `json:"ropewalk/result"`
	} `json:"_meta"`
}

func TestAClientCanGetAnExcerptOfALongResultAndReadTheRest(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.Config("tools: {resultBudget: 1000}\n"))
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "plain", harness.Plain)})
	client := mcp.NewClient(&mcp.Implementation{Name: "asking", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: s.URL + "/mcp/" + harness.Workspace}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	text := strings.Repeat("0123456789", 3000) + "END"
	call := func(meta mcp.Meta) kept {
		t.Helper()
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Meta: meta, Name: "plain__echo", Arguments: map[string]any{"text": text}})
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(result)
		if err != nil {
			t.Fatal(err)
		}
		var k kept
		if err := json.Unmarshal(raw, &k); err != nil {
			t.Fatal(err)
		}
		return k
	}
	if whole := call(nil); whole.Content[0].Text != text || whole.Meta.Kept.URI != "" {
		t.Errorf("without resultBudget, the client got %d bytes, stored as %q", len(whole.Content[0].Text), whole.Meta.Kept.URI)
	}
	excerpt := call(mcp.Meta{"ropewalk/resultBudget": true})
	if shown := excerpt.Content[0].Text; len(shown) > 4000 || !strings.HasPrefix(shown, "0123456789") || !strings.HasSuffix(shown, "END") || excerpt.Meta.Kept.Characters != len(text) {
		t.Errorf("the excerpt has %d bytes; the stored text is %+v", len(shown), excerpt.Meta.Kept)
	}
	uri := excerpt.Meta.Kept.URI
	if read, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err != nil || read.Contents[0].Text != text {
		t.Errorf("the resource %s: %v", uri, err)
	}
	on, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "system__read_result", Arguments: map[string]any{"id": uri, "offset": 29_998}})
	if err != nil || !strings.HasPrefix(on.Content[0].(*mcp.TextContent).Text, "89END\n") {
		t.Errorf("reading the rest: %+v, %v", on, err)
	}
	for meta, want := range map[string]bool{"": false, `"ropewalk/resultBudget":true,`: true} { // a raw request, because the SDK would return the second list from its cache
		a := s.Do(t, "POST", "/mcp/"+harness.Workspace, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{`+meta+`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`,
			"Accept: application/json, text/event-stream", "MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/list")
		if a.Status != 200 || strings.Contains(a.Body, `"system__read_result"`) != want {
			t.Errorf("with _meta %s, system__read_result is listed: %v, status %d", meta, !want, a.Status)
		}
	}

	body := fmt.Sprintf(`{"tool":"plain__echo","arguments":{"text":%q},"_meta":{"ropewalk/resultBudget":500}}`, text)
	a := s.Do(t, "POST", "/v1/tools/call", body)
	var over kept
	if err := json.Unmarshal([]byte(a.Body), &over); err != nil || a.Status != 200 || len(over.Content) != 1 || len(over.Content[0].Text) > 2000 || over.Meta.Kept.URI == uri || len(over.Result) > 2100 {
		t.Fatalf("through /v1: %d %.500s", a.Status, a.Body)
	}
	if a := s.Do(t, "POST", "/v1/tools/call", `{"tool":"plain__echo","arguments":{"text":"x"},"_meta":{"ropewalk/resultBudget":"few"}}`); a.Status != 400 || !strings.Contains(a.Body, "ropewalk/resultBudget") {
		t.Errorf("an invalid budget: %d %s", a.Status, a.Body)
	}
	if a := s.Do(t, "POST", "/v1/tools/call", `{"tool":"plain__echo","arguments":{"text":"x"},"_meta":7}`); a.Status != 400 || !strings.Contains(a.Body, "_meta must be an object") {
		t.Errorf("an invalid _meta: %d %s", a.Status, a.Body)
	}
	s.Stop()
	s.Start()
	if a := s.Do(t, "POST", "/v1/tools/call", fmt.Sprintf(`{"tool":"system__read_result","arguments":{"id":%q,"offset":30000,"length":2}}`, over.Meta.Kept.URI)); !strings.Contains(a.Body, `EN\n\n[Characters 30000-30001 of 30003.`) {
		t.Errorf("after a restart: %s", a.Body)
	}
}
