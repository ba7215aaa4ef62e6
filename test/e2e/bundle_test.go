package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// bundleArg turns this test's executable into a bundle; the argument after it is its character.
const bundleArg = "__bundle"

// The characters of the Go bundle.
const (
	plain     = "plain"     // serves
	mortal    = "mortal"    // does not start while a file "poison" is in its data directory
	mute      = "mute"      // lives, and never answers
	broken    = "broken"    // ends at once
	family    = "family"    // serves, with a child, and a grandchild that left its session and its environment
	leaf      = "leaf"      // one of family's
	teller    = "teller"    // serves, and has tools that report and ask (teller_test.go)
	worker    = "worker"    // serves, and writes down what it was called with (deployment_test.go)
	elder     = "elder"     // a teller that speaks revisions with sessions only (deployment_test.go)
	stateless = "stateless" // speaks 2026-07-28 only, and asks (stateless_test.go)
)

func bundleMain(character string) int {
	switch character {
	case mute, leaf:
		select {}
	case stateless:
		return statelessMain()
	case broken:
		fmt.Fprintln(os.Stderr, "this bundle is broken")
		return 3
	case mortal:
		if _, err := os.Stat(filepath.Join(os.Getenv("ROPEWALK_DATA_DIR"), "poison")); err == nil {
			fmt.Fprintln(os.Stderr, "poisoned")
			return 4
		}
	case family:
		for _, environ := range [][]string{os.Environ(), {}} {
			child := exec.Command("/proc/self/exe", bundleArg, leaf)
			child.Env, child.SysProcAttr = environ, &syscall.SysProcAttr{Setsid: len(environ) == 0}
			if err := child.Start(); err != nil {
				return 5
			}
		}
	}
	server := bundleServer()
	switch character {
	case elder:
		server = elderServer()
	case teller:
		addTellers(server)
	case worker:
		addWorker(server)
	}
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		return 1
	}
	return 0
}

type said struct {
	Text string `json:"text"`
}

// bundleServer has echo, the whole environment, a call that lasts until it is notified to go on, and
// one that adds a tool.
func bundleServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "e2e", Version: "1.0.0"}, nil)
	text := func(text string) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	}
	echo := func(_ context.Context, _ *mcp.CallToolRequest, in said) (*mcp.CallToolResult, any, error) {
		return text(in.Text)
	}
	mcp.AddTool(s, &mcp.Tool{Name: "echo", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, echo)
	mcp.AddTool(s, &mcp.Tool{Name: "environment"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		raw, _ := json.Marshal(map[string]any{"variables": os.Environ(), "pid": os.Getpid()})
		return text(string(raw))
	})
	mcp.AddTool(s, &mcp.Tool{Name: "last"}, func(ctx context.Context, _ *mcp.CallToolRequest, in said) (*mcp.CallToolResult, any, error) {
		_ = os.WriteFile(in.Text+".begun", nil, 0o600)
		if !eventually(patience, func() bool { _, err := os.Stat(in.Text); return err == nil || ctx.Err() != nil }) || ctx.Err() != nil {
			_ = os.WriteFile(in.Text+".cancelled", nil, 0o600)
			return nil, nil, context.Canceled
		}
		return text("lasted")
	})
	mcp.AddTool(s, &mcp.Tool{Name: "grow"}, func(_ context.Context, _ *mcp.CallToolRequest, in said) (*mcp.CallToolResult, any, error) {
		mcp.AddTool(s, &mcp.Tool{Name: in.Text}, echo)
		return text("grown")
	})
	return s
}

// tools of bundleServer, before it grows.
const goTools = 4

// goBundle writes a binary bundle (MCPB) of this executable and returns its directory.
func goBundle(t *testing.T, name, character string) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return bundle(t, map[string]any{"name": "@e2e/" + name, "server": map[string]any{
		"type": "binary", "entry_point": "server/bundle",
		"mcp_config": map[string]any{"command": exe, "args": []string{bundleArg, character}},
	}})
}

// bundle writes a bundle directory with a manifest that has these members beside the usual ones.
func bundle(t *testing.T, manifest map[string]any) string {
	t.Helper()
	whole := map[string]any{
		"manifest_version": "0.3", "version": "1.0.0", "description": "A bundle of the tests.", "author": map[string]any{"name": "e2e"},
	}
	for key, value := range manifest {
		whole[key] = value
	}
	raw, err := json.MarshalIndent(whole, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "manifest.json"), string(raw))
	return dir
}
