package sample

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// viewURI is the app's primary view (MCP Apps).
const viewURI = "ui://sample/hello"

// viewMIME is the media type of an MCP Apps view.
const viewMIME = "text/html;profile=mcp-app"

//go:embed hello.html
var helloHTML string

type echoInput struct {
	Text string `json:"text" jsonschema:"what to echo"`
}

type countInput struct {
	To           int `json:"to" jsonschema:"how far to count, 1 to 100"`
	Milliseconds int `json:"milliseconds,omitempty" jsonschema:"how long each step takes, 0 to 1000"`
}

type failInput struct {
	Reason string `json:"reason,omitempty" jsonschema:"error text"`
}

type greetInput struct {
	Name string `json:"name" jsonschema:"who to greet"`
}

// Serve answers MCP on standard input and output until they close, or ctx ends.
func Serve(ctx context.Context, version string) error {
	s := mcp.NewServer(&mcp.Implementation{Name: "sample", Title: "Ropewalk sample", Version: version}, nil)
	readOnly := &mcp.ToolAnnotations{ReadOnlyHint: true}
	mcp.AddTool(s, &mcp.Tool{Name: "echo", Title: "Echo", Description: "Returns the text that it is given.", Annotations: readOnly}, echo)
	mcp.AddTool(s, &mcp.Tool{Name: "count", Title: "Count", Description: "Counts slowly, with a progress notification for each step.", Annotations: readOnly}, count)
	mcp.AddTool(s, &mcp.Tool{Name: "fail", Title: "Fail", Description: "Fails, so that you can see what a failing tool looks like.", Annotations: readOnly}, fail)
	mcp.AddTool(s, &mcp.Tool{
		Name: "greet", Title: "Greet", Description: "Greets somebody, and shows the greeting in a view.", Annotations: readOnly,
		Meta: mcp.Meta{"ui": map[string]any{"resourceUri": viewURI}},
	}, greet)
	s.AddResource(&mcp.Resource{URI: viewURI, Name: "hello", Title: "Hello", MIMEType: viewMIME}, readView)
	err := s.Run(ctx, &mcp.StdioTransport{})
	if ctx.Err() != nil {
		return nil //nolint:nilerr // being stopped is not a failure
	}
	return err
}

func text(format string, args ...any) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, args...)}}}
}

func echo(_ context.Context, _ *mcp.CallToolRequest, in echoInput) (*mcp.CallToolResult, any, error) {
	return text("%s", in.Text), nil, nil
}

func count(ctx context.Context, req *mcp.CallToolRequest, in countInput) (*mcp.CallToolResult, any, error) {
	if in.To < 1 || in.To > 100 || in.Milliseconds < 0 || in.Milliseconds > 1000 {
		return nil, nil, errors.New("to must be between 1 and 100, and milliseconds between 0 and 1000")
	}
	step := time.NewTicker(max(time.Duration(in.Milliseconds)*time.Millisecond, time.Millisecond))
	defer step.Stop()
	for i := 1; i <= in.To; i++ {
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-step.C:
		}
		token := req.Params.GetProgressToken()
		if token == nil {
			continue
		}
		err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: token, Progress: float64(i), Total: float64(in.To), Message: fmt.Sprintf("at %d", i),
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return text("counted to %d", in.To), nil, nil
}

func fail(_ context.Context, _ *mcp.CallToolRequest, in failInput) (*mcp.CallToolResult, any, error) {
	return nil, nil, errors.New(strings.TrimSpace("failed as requested: " + in.Reason))
}

func greet(_ context.Context, _ *mcp.CallToolRequest, in greetInput) (*mcp.CallToolResult, any, error) {
	return text("Hello, %s!", in.Name), nil, nil
}

func readView(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: viewURI, MIMEType: viewMIME, Text: helloHTML}}}, nil
}
