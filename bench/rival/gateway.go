package rival

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Gateway serves one bundle over HTTP with the SDK on both sides, as most gateways in Go do. It writes its URL
// to out.
func Gateway(ctx context.Context, bundle []string, out io.Writer) error {
	client := mcp.NewClient(&mcp.Implementation{Name: "bench-gateway", Version: "1"}, nil)
	upstream, err := client.Connect(ctx, &mcp.CommandTransport{Command: exec.CommandContext(ctx, bundle[0], bundle[1:]...)}, nil) //nolint:gosec // the benchmark's own executable
	if err != nil {
		return fmt.Errorf("connect to the bundle: %w", err)
	}
	defer func() { _ = upstream.Close() }()
	s := mcp.NewServer(&mcp.Implementation{Name: "bench-gateway", Version: "1"}, nil)
	for tool, err := range upstream.Tools(ctx, nil) {
		if err != nil {
			return fmt.Errorf("list the bundle's tools: %w", err)
		}
		s.AddTool(tool, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return upstream.CallTool(ctx, &mcp.CallToolParams{Name: req.Params.Name, Arguments: req.Params.Arguments})
		})
	}
	return serve(ctx, "/mcp", mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil), out)
}
