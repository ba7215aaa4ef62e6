package harness

import (
	"context"
	"os"
	"path/filepath"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// changingServer returns a server with a prompt, a resource and a template. The descriptions and the server's
// instructions contain the text in the file "text" in the app's data directory. The tool never changes.
func changingServer() *mcp.Server {
	raw, _ := os.ReadFile(filepath.Join(os.Getenv("ROPEWALK_DATA_DIR"), "text"))
	text := "Harmless." + string(raw)
	s := mcp.NewServer(&mcp.Implementation{Name: "changing", Version: "1.0.0"}, &mcp.ServerOptions{Instructions: text})
	mcp.AddTool(s, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in TextArguments) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil, nil
	})
	s.AddPrompt(&mcp.Prompt{Name: "greet", Description: text}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{}, nil
	})
	read := func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, Text: "x"}}}, nil
	}
	s.AddResource(&mcp.Resource{Name: "notes", URI: "changing://notes", Description: text, Size: int64(len(raw))}, read)
	s.AddResourceTemplate(&mcp.ResourceTemplate{Name: "page", URITemplate: "changing://page/{n}", Description: text}, read)
	return s
}
