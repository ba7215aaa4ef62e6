package rival

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// EchoTool is the tool that every server and bundle in this package has: it returns its argument "text".
const EchoTool = "echo"

const echoSchema = `{"type":"object","properties":{"text":{"type":"string","description":"what to say back"}},"required":["text"]}`

// newEcho returns an SDK server with the echo tool and the given number of additional tools.
func newEcho(tools int) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: EchoTool, Description: "Says back what it is given.", InputSchema: json.RawMessage(echoSchema)}, echo)
	for i := 1; i < tools; i++ {
		s.AddTool(&mcp.Tool{
			Name: fmt.Sprintf("tool_%03d", i), Title: fmt.Sprintf("Tool %d", i),
			Description: "One of many tools, with a description about as long as those that real servers give to a model.",
			InputSchema: json.RawMessage(echoSchema),
		}, echo)
	}
	return s
}

func echo(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var in struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(req.Params.Arguments, &in); err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil
}

// Bundle runs the bundle written with the SDK: an MCP server on standard input and output.
func Bundle(ctx context.Context, tools int) error {
	return newEcho(tools).Run(ctx, &mcp.StdioTransport{})
}
