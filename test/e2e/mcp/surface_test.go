package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

func TestAClientThatSearchesCanFindAndCallEveryTool(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.Config("tools: {favourites: [\"*__echo\"], approve: [plain__grow]}\n"))
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "plain", harness.Plain)})
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "viewed", harness.Viewed)})
	client := mcp.NewClient(&mcp.Implementation{Name: "searching", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: s.URL + "/mcp/" + harness.Workspace + "?surface=search"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	if got := strings.Join(names, " "); got != "system__search_tools system__call_tool plain__echo" {
		t.Errorf("listed %s", got)
	}
	found, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "system__search_tools", Arguments: map[string]any{"query": "show a view"}})
	raw, _ := json.Marshal(found)
	if err != nil || !strings.Contains(string(raw), "viewed__show") {
		t.Fatalf("%s, %v", raw, err)
	}
	called, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "system__call_tool", Arguments: map[string]any{"name": "viewed__show"}})
	ui, _ := called.Meta["ui"].(map[string]any)
	view, _ := ui["resourceUri"].(string)
	if err != nil || called.IsError || view == "" {
		t.Errorf("%+v, %v", called, err)
	}
	if read, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: view}); err != nil || len(read.Contents) != 1 {
		t.Errorf("the view: %+v, %v", read, err)
	}
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "system__call_tool", Arguments: map[string]any{"name": "plain__nothing"}}); err == nil || !strings.Contains(err.Error(), "Unknown tool: plain__nothing") {
		t.Errorf("a tool that does not exist: %v", err)
	}
	direct, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "plain__environment", Arguments: map[string]any{}})
	if err != nil || direct.IsError {
		t.Errorf("a tool that is not listed, by its own name: %+v, %v", direct, err)
	}
	for path, want := range map[string]int{"?surface=full": 200, "?surface=tiny": 400} {
		a := s.Do(t, "POST", "/mcp/"+harness.Workspace+path, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`,
			"Accept: application/json, text/event-stream", "MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/list")
		if a.Status != want || want == 400 && !strings.Contains(a.Body, "it must be full or search") {
			t.Errorf("%s: %d %s", path, a.Status, a.Body)
		}
	}
}

// The request chooses the surface. If it does not, the first of these that sets one decides: the API key, the view, the
// workspace, the configuration.
func TestTheKeyOrViewSetsTheSurfaceUnlessTheClientChooses(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.Env("SERVICE_API_KEY="+harness.APIKey), harness.Config("views:\n  short: {surface: search}\n  long: {surface: full}\n"))
	owner := "Authorization: Bearer " + harness.APIKey
	s.Do(t, "POST", "/v1/apps/install", map[string]any{"path": harness.GoBundle(t, "plain", harness.Plain)}, owner)
	key := func(surface string) string {
		made := s.Do(t, "POST", "/v1/keys", map[string]any{"name": "k", "role": "admin", "surface": surface}, owner).Object(t)
		return "Authorization: Bearer " + fmt.Sprint(made["key"])
	}
	searching, full, open := key("search"), key("full"), key("")
	for _, c := range []struct{ credentials, view, chosen, want string }{
		{open, "", "", "full"}, {searching, "", "", "search"}, {full, "", "", "full"},
		{open, "/v/short", "", "search"}, {open, "/v/long", "", "full"}, {searching, "/v/long", "", "search"}, {full, "/v/short", "", "full"},
		{searching, "/v/short", "full", "full"}, {full, "/v/long", "search", "search"},
	} {
		for _, version := range []string{"2026-07-28", "2025-11-25"} {
			headers := []string{c.credentials, "Accept: application/json, text/event-stream", "MCP-Protocol-Version: " + version}
			if c.chosen != "" {
				headers = append(headers, "X-Tools-Surface: "+c.chosen)
			}
			path, params := "/mcp/"+harness.Workspace+c.view, `{}`
			if version == "2025-11-25" {
				opened := s.Do(t, "POST", path, harness.Initialize, c.credentials, "Accept: application/json, text/event-stream")
				headers = append(headers, "Mcp-Session-Id: "+opened.Header.Get("Mcp-Session-Id"), "MCP-Protocol-Version: 2025-06-18")
			} else {
				headers = append(headers, "Mcp-Method: tools/list")
				params = `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}`
			}
			a := s.Do(t, "POST", path, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":`+params+`}`, headers...)
			lists, searches := strings.Contains(a.Body, `"plain__echo"`), strings.Contains(a.Body, `"system__call_tool"`)
			if a.Status != 200 || lists != (c.want == "full") || searches != (c.want == "search") {
				t.Errorf("%s with %s, view %q, chosen %q: %d, lists the tools: %t, the search: %t; want %s", version, c.credentials, c.view, c.chosen, a.Status, lists, searches, c.want)
			}
		}
	}
}
