package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/internal/testkit"
)

// askingInSessions returns a server that supports only an older MCP revision. In that revision, the app sends its
// questions as requests, and the call waits for the answer.
func askingInSessions() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "asker", Version: "1.0.0"}, &mcp.ServerOptions{SupportedProtocolVersions: []string{"2025-11-25"}})
	addAskingTools(s)
	return s
}

// GateFile is a file in an app's data directory. Calls to the tool named report wait until it exists.
const GateFile = "gate"

// gateOpened returns a channel that is closed as soon as GateFile exists.
func gateOpened() <-chan struct{} {
	open := make(chan struct{})
	go func() {
		defer close(open)
		testkit.Within(10*Timeout, func() bool {
			_, err := os.Stat(filepath.Join(os.Getenv("ROPEWALK_DATA_DIR"), GateFile))
			return err == nil
		})
	}()
	return open
}

// addAskingTools adds two tools. The progress and the result of report contain the text from the call, and so does the
// question of ask. report waits for GateFile, so that many calls can be in progress at the same time.
func addAskingTools(s *mcp.Server) {
	open := gateOpened()
	text := func(text string) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	}
	report := func(ctx context.Context, r *mcp.CallToolRequest, n int, text string) error {
		return r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(n), Message: text})
	}
	mcp.AddTool(s, &mcp.Tool{Name: "report"}, func(ctx context.Context, r *mcp.CallToolRequest, in TextArguments) (*mcp.CallToolResult, any, error) {
		for n := range 3 {
			if err := report(ctx, r, n, in.Text); err != nil {
				return nil, nil, err
			}
			if n == 0 {
				<-open
			}
		}
		return text(in.Text)
	})
	mcp.AddTool(s, &mcp.Tool{Name: "ask"}, func(ctx context.Context, r *mcp.CallToolRequest, in TextArguments) (*mcp.CallToolResult, any, error) {
		if err := report(ctx, r, 0, in.Text); err != nil {
			return nil, nil, err
		}
		answer, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: in.Text, RequestedSchema: map[string]any{
			"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}},
		}})
		if err != nil {
			return nil, nil, err
		}
		if err := report(ctx, r, 1, in.Text); err != nil {
			return nil, nil, err
		}
		return text(fmt.Sprint(answer.Content["name"]))
	})
}
