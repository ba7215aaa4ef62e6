package harness

import (
	"context"
	"encoding/json"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The resources of an Unfolding bundle. The text of each is the path of the app's data directory.
const (
	AddedResource    = "added://note"    // listed after the tool named unfold was called with a name
	UnlistedResource = "unlisted://note" // never listed, but the tool named link links to it
)

// unfolding returns a server that supports only an MCP revision with sessions. It has two tools. The tool named unfold
// asks its client a question. If it was called with a name, it then adds AddedResource and a tool of that name. The
// tool named link returns a link to UnlistedResource.
func unfolding() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "unfolding", Version: "1.0.0"}, &mcp.ServerOptions{SupportedProtocolVersions: []string{"2025-11-25"}})
	read := func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, Text: os.Getenv("ROPEWALK_DATA_DIR")}}}, nil
	}
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			if request, ok := r.(*mcp.ReadResourceRequest); ok && request.Params.URI == UnlistedResource {
				return read(ctx, request)
			}
			return next(ctx, method, r)
		}
	})
	s.AddResource(&mcp.Resource{URI: "shared://note", Name: "shared"}, read)
	mcp.AddTool(s, &mcp.Tool{Name: "unfold"}, func(ctx context.Context, r *mcp.CallToolRequest, in TextArguments) (*mcp.CallToolResult, any, error) {
		_, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "May I?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`)})
		if err == nil && in.Text != "" {
			s.AddResource(&mcp.Resource{URI: AddedResource, Name: "added"}, read)
			mcp.AddTool(s, &mcp.Tool{Name: in.Text, Description: "Added at run time."}, func(_ context.Context, _ *mcp.CallToolRequest, in TextArguments) (*mcp.CallToolResult, any, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil, nil
			})
		}
		return &mcp.CallToolResult{}, nil, err
	})
	mcp.AddTool(s, &mcp.Tool{Name: "link"}, func(context.Context, *mcp.CallToolRequest, TextArguments) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.ResourceLink{URI: UnlistedResource, Name: "unlisted"}}}, nil, nil
	})
	return s
}
