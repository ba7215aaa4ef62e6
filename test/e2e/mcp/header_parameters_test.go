package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// Arguments with x-mcp-header are repeated in headers, both from the official client to this server, and from this
// server to the official server. Both servers compare the headers with the body.
func TestHeaderParametersAreSentToTheUpstreamServer(t *testing.T) {
	t.Parallel()
	far := mcp.NewServer(&mcp.Implementation{Name: "far", Version: "1.0.0"}, nil)
	far.AddTool(&mcp.Tool{Name: "sell", InputSchema: json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},
		"in":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"},"b":{"type":"boolean","x-mcp-header":"B"}}}}}`)},
		func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			h := r.Extra.Header
			text := fmt.Sprintf("%s|%s|%s", h.Get("Mcp-Param-Region"), h.Get("Mcp-Param-N"), h.Get("Mcp-Param-B"))
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
		})
	endpoint := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return far }, &mcp.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(func() {
		endpoint.CloseClientConnections()
		endpoint.Close()
	})
	s := harness.Serve(t)
	s.Install(t, map[string]any{"url": endpoint.URL + "/mcp", "serverName": "far"})
	seen := harness.RunScript[struct{ Said []string }](t, "headers.mjs", s.URL, harness.Workspace)
	want := []string{"us-west1|42|true", "=?base64?SGVsbG8sIOS4lueVjA==?=||", "=?base64?IHBhZGRlZCA=?=||", "=?base64??=||", "||"}
	if !slices.Equal(seen.Said, want) {
		t.Errorf("the headers were %q, want %q", seen.Said, want)
	}
}
