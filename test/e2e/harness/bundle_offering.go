package harness

import (
	"context"
	"os"
	"path/filepath"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/internal/testkit"
)

// ShutFile is a file in the data directory of an Offering bundle. The app finishes its start only after the file has
// been removed.
const ShutFile = "shut"

// offering returns a server with the tool named echo, the prompt named ask, which has completions, and the view
// ui://offer/view.
func offering() *mcp.Server {
	shut := filepath.Join(os.Getenv("ROPEWALK_DATA_DIR"), ShutFile)
	testkit.Within(Timeout, func() bool { _, err := os.Stat(shut); return err != nil })
	s := mcp.NewServer(&mcp.Implementation{Name: "offering", Version: "1.0.0"}, &mcp.ServerOptions{
		CompletionHandler: func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{"one"}}}, nil
		},
	})
	mcp.AddTool(s, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in TextArguments) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil, nil
	})
	s.AddPrompt(&mcp.Prompt{Name: "ask"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "why?"}}}}, nil
	})
	s.AddResource(&mcp.Resource{Name: "view", URI: "ui://offer/view", MIMEType: "text/html"}, func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, MIMEType: "text/html", Text: "<p>"}}}, nil
	})
	return s
}
