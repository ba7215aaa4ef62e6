package harness

import (
	"context"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// View is the URI of the view in every Viewed bundle.
const View = "ui://clock/view.html"

// viewedServer returns a server with a view and two tools. The tool named show belongs to the view and returns the data
// directory and a link to the view. The tool named touch announces that the view has changed.
func viewedServer() *mcp.Server {
	accept := &mcp.ServerOptions{
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "viewed", Version: "1.0.0"}, accept)
	data := os.Getenv("ROPEWALK_DATA_DIR")
	s.AddResource(&mcp.Resource{Name: "view", URI: View, MIMEType: "text/html;profile=mcp-app"},
		func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, MIMEType: "text/html;profile=mcp-app", Text: data}}}, nil
		})
	show := &mcp.Tool{Name: "show", Meta: mcp.Meta{"ui": map[string]any{"resourceUri": View}}}
	mcp.AddTool(s, show, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: data}, &mcp.ResourceLink{URI: View, Name: "view"}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "touch"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		if err := s.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: View}); err != nil {
			return nil, nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "touched"}}}, nil, nil
	})
	return s
}
