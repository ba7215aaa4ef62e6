package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/internal/testkit"
)

// bundleArg is the first argument of a test executable that runs as a bundle. The second argument is the kind of
// bundle.
const bundleArg = "__bundle"

// The kinds of bundles that GoBundle can write.
const (
	Plain            = "plain"             // has the tools of bundleServer
	Poisonable       = "poisonable"        // does not start while its data directory contains a file named poison
	Silent           = "silent"            // runs and never responds
	Broken           = "broken"            // exits immediately
	WithChildren     = "with-children"     // starts two children, one of them in its own session and without an environment
	child            = "child"             // a child of WithChildren
	Asking           = "asker"             // has the tools of addAskingTools
	AskingInSessions = "asker-in-sessions" // like Asking, but supports only MCP revisions with sessions
	Worker           = "worker"            // has the tool of addWorker
	Viewed           = "viewed"            // has the view and the tools of viewedServer
	Offering         = "offering"          // runs the server that offering returns
	Unfolding        = "unfolding"         // runs the server that unfolding returns
	Stateless        = "stateless"         // supports only MCP 2026-07-28
	Changing         = "changing"          // runs the server that changingServer returns
	Faulty           = "faulty"            // breaks the protocol (see faultyMain)
	Undeclared       = "undeclared"        // like Faulty, but declares no capabilities
	Tasks            = "tasks"             // is a TaskApp
)

// bundleMain runs as a bundle of the given kind and returns the exit code.
func bundleMain(character string) int {
	switch character {
	case Silent, child:
		<-time.After(time.Hour) // select {} would be a fatal deadlock, because there is no other goroutine
	case Stateless:
		return statelessMain()
	case Tasks:
		return tasksMain()
	case Faulty, Undeclared:
		return faultyMain(character == Faulty)
	case Broken:
		fmt.Fprintln(os.Stderr, "this bundle is broken")
		return 3
	case Poisonable:
		if _, err := os.Stat(filepath.Join(os.Getenv("ROPEWALK_DATA_DIR"), "poison")); err == nil {
			fmt.Fprintln(os.Stderr, "poisoned")
			return 4
		}
	case WithChildren:
		for _, environ := range [][]string{os.Environ(), {}} {
			child := exec.Command("/proc/self/exe", bundleArg, child)
			child.Env, child.SysProcAttr = environ, &syscall.SysProcAttr{Setsid: len(environ) == 0}
			if err := child.Start(); err != nil {
				return 5
			}
		}
	}
	server := bundleServer()
	switch character {
	case AskingInSessions:
		server = askingInSessions()
	case Offering:
		server = offering()
	case Unfolding:
		server = unfolding()
	case Asking:
		addAskingTools(server)
	case Viewed:
		server = viewedServer()
	case Worker:
		addWorker(server)
	case Changing:
		server = changingServer()
	}
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		return 1
	}
	return 0
}

// TextArguments are the arguments of most tools of the Go bundle.
type TextArguments struct {
	Text string `json:"text"`
}

// bundleServer returns a server with these tools: echo; environment, which returns the environment variables, the
// clientInfo and the call's _meta; last, which runs until a file exists; and grow, which adds a tool.
func bundleServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "e2e", Version: "1.0.0"}, nil)
	text := func(text string) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	}
	echo := func(_ context.Context, _ *mcp.CallToolRequest, in TextArguments) (*mcp.CallToolResult, any, error) {
		return text(in.Text)
	}
	mcp.AddTool(s, &mcp.Tool{Name: "echo", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, echo)
	mcp.AddTool(s, &mcp.Tool{Name: "environment"}, func(_ context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		raw, _ := json.Marshal(map[string]any{"variables": os.Environ(), "pid": os.Getpid(), "client": r.Session.InitializeParams().ClientInfo, "meta": r.Params.Meta})
		return text(string(raw))
	})
	mcp.AddTool(s, &mcp.Tool{Name: "last"}, func(ctx context.Context, _ *mcp.CallToolRequest, in TextArguments) (*mcp.CallToolResult, any, error) {
		_ = os.WriteFile(in.Text+".begun", nil, 0o600)
		if !testkit.Within(Timeout, func() bool { _, err := os.Stat(in.Text); return err == nil || ctx.Err() != nil }) || ctx.Err() != nil {
			_ = os.WriteFile(in.Text+".cancelled", nil, 0o600)
			return nil, nil, context.Canceled
		}
		return text("lasted")
	})
	mcp.AddTool(s, &mcp.Tool{Name: "grow"}, func(_ context.Context, _ *mcp.CallToolRequest, in TextArguments) (*mcp.CallToolResult, any, error) {
		mcp.AddTool(s, &mcp.Tool{Name: in.Text}, echo)
		return text("grown")
	})
	return s
}
