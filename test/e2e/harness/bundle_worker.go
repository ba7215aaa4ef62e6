package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// WorkFile is the file in which a Worker records the texts of its calls.
const WorkFile = "worked"

// addWorker adds the tool named work. The tool records the text of the call, takes 30 ms, and returns the data
// directory.
func addWorker(s *mcp.Server) {
	mcp.AddTool(s, &mcp.Tool{Name: "work"}, func(_ context.Context, _ *mcp.CallToolRequest, in TextArguments) (*mcp.CallToolResult, any, error) {
		data := os.Getenv("ROPEWALK_DATA_DIR")
		f, err := os.OpenFile(filepath.Join(data, WorkFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, nil, err
		}
		_, err = f.WriteString(in.Text + "\n")
		if closed := f.Close(); err != nil || closed != nil {
			return nil, nil, fmt.Errorf("record the text: %w, %w", err, closed)
		}
		<-time.After(30 * time.Millisecond)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: data}}}, nil, nil
	})
}
