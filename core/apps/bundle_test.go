package apps

import (
	"archive/zip"
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

// bundleArg makes the test binary act as a bundle. The next argument is the mode.
const bundleArg = "__bundle"

// These are the modes of the bundle.
const (
	modeNormal   = "normal"   // serves
	modeDying    = "dying"    // writes to stderr and exits with status 7
	modeSilent   = "silent"   // reads but never responds
	modeJunk     = "junk"     // serves, with lines on stdout that are not messages
	modeFlood    = "flood"    // serves, after 60 MB on stderr
	modeTree     = "tree"     // serves, with three child processes, two of them in their own sessions
	modeFuse     = "fuse"     // serves, unless a file named fuse is in its data directory
	modeLeaf     = "leaf"     // a child process: waits for an hour
	modeWithView = "withview" // serves, and its first tool has a view
	modeTalk     = "talk"     // serves, asks, logs and announces updates
	modeOld      = "old"      // like talk, but only in the older revisions
	modeNew      = "new"      // speaks only the revision without a handshake
	modeGrumpy   = "grumpy"   // responds to everything with an error
	modeTask     = "task"     // has a tool that requires a task
	modeFuture   = "future"   // speaks a revision that does not exist
)

func bundleMain(args []string) int {
	mode, data := args[0], getenv(instance.DataDirVariable)
	switch mode {
	case modeDying:
		fmt.Fprintln(os.Stderr, "cannot go on:", getenv("API_KEY"))
		return 7
	case modeSilent:
		_, _ = bufio.NewReader(os.Stdin).ReadString(0)
		return 0
	case modeTask:
		return taskMain()
	case modeNew:
		return newOnly()
	case modeGrumpy:
		return answerAll(`"error":{"code":-32000,"message":"no license for this machine"}`)
	case modeFuture:
		return answerAll(`"result":{"protocolVersion":"2099-01-01","capabilities":{},"serverInfo":{"name":"f","version":"1"}}`)
	case modeLeaf:
		<-time.After(time.Hour)
	case modeFlood:
		line := strings.Repeat("x", 1023) + "\n"
		for range 60 << 10 {
			fmt.Fprint(os.Stderr, line)
		}
	case modeJunk:
		fmt.Print("Hello from a library that prints\n\n{\"half\":\n")
	case modeTree:
		plant()
	case modeFuse:
		if _, err := os.Stat(filepath.Join(data, "fuse")); err == nil {
			fmt.Fprintln(os.Stderr, "the fuse is in")
			return 9
		}
	}
	if err := bundleServer(mode).Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		return 1
	}
	return 0
}

// plant starts three children and writes their process IDs where the test looks for them.
func plant() {
	var pids []string
	for i := range 3 {
		c := exec.Command("/proc/self/exe", bundleArg, modeLeaf)
		if i > 0 {
			c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		}
		if c.Start() == nil {
			pids = append(pids, strconv.Itoa(c.Process.Pid))
		}
	}
	_ = os.WriteFile(filepath.Join(getenv(instance.DataDirVariable), "pids"), []byte(strings.Join(pids, "\n")), 0o600)
}

// environ returns the environment of the bundle.
func environ() []string {
	return os.Environ()
}

func getenv(name string) string {
	value, _ := inside{Env: environ()}.env(name)
	return value
}

type textInput struct {
	Text string `json:"text"`
}

func textResult(text string) (*mcp.CallToolResult, any, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
}

func bundleServer(mode string) *mcp.Server {
	var versions []string
	if mode == modeOld {
		versions = []string{"2025-11-25", "2025-06-18"}
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "test bundle", Version: "9.9.9"}, &mcp.ServerOptions{
		SupportedProtocolVersions: versions,
		Instructions:              "Call echo first.",
		SubscribeHandler: func(context.Context, *mcp.SubscribeRequest) error {
			<-time.After(50 * time.Millisecond) // slow, so that a call that does not wait for the subscription overtakes it
			return nil
		},
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	if mode == modeTalk || mode == modeOld {
		addTalk(s)
	}
	echo := &mcp.Tool{Name: "echo", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}
	if mode == modeWithView {
		echo.Meta = mcp.Meta{"ui": map[string]any{"resourceUri": "ui://view/main"}}
	}
	mcp.AddTool(s, echo, func(_ context.Context, _ *mcp.CallToolRequest, in textInput) (*mcp.CallToolResult, any, error) {
		if mode == modeJunk {
			fmt.Println("echo was called")
		}
		return textResult(in.Text)
	})
	mcp.AddTool(s, &mcp.Tool{Name: "inside"}, func(context.Context, *mcp.CallToolRequest, textInput) (*mcp.CallToolResult, any, error) {
		dir, _ := os.Getwd()
		raw, err := json.Marshal(inside{os.Getpid(), dir, os.Args, environ()})
		if err != nil {
			return nil, nil, err
		}
		return textResult(string(raw))
	})
	mcp.AddTool(s, &mcp.Tool{Name: "exit"}, func(context.Context, *mcp.CallToolRequest, textInput) (*mcp.CallToolResult, any, error) {
		syscall.Exit(3)
		return nil, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "hang"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ textInput) (*mcp.CallToolResult, any, error) {
		_ = os.WriteFile(filepath.Join(getenv(instance.DataDirVariable), "hanging"), nil, 0o600)
		<-ctx.Done()
		return nil, nil, ctx.Err()
	})
	mcp.AddTool(s, &mcp.Tool{Name: "grow"}, func(_ context.Context, _ *mcp.CallToolRequest, in textInput) (*mcp.CallToolResult, any, error) {
		mcp.AddTool(s, &mcp.Tool{Name: in.Text}, func(context.Context, *mcp.CallToolRequest, textInput) (*mcp.CallToolResult, any, error) {
			return textResult("grown")
		})
		return textResult("ok")
	})
	s.AddResource(&mcp.Resource{Name: "main", URI: "ui://view/main", MIMEType: "text/html;profile=mcp-app"},
		func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, MIMEType: "text/html;profile=mcp-app", Text: "<h1>main</h1>"}}}, nil
		})
	return s
}

// addTalk adds tools that make the bundle ask questions, log messages and announce updates.
func addTalk(s *mcp.Server) {
	mcp.AddTool(s, &mcp.Tool{Name: "ask"}, func(ctx context.Context, r *mcp.CallToolRequest, in textInput) (*mcp.CallToolResult, any, error) {
		answer, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: in.Text, RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"word": map[string]any{"type": "string"}}}})
		if err != nil {
			return nil, nil, err
		}
		_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1, Message: "heard"})
		return textResult(fmt.Sprintf("%v %d", answer.Content["word"], os.Getpid()))
	})
	mcp.AddTool(s, &mcp.Tool{Name: "visit"}, func(context.Context, *mcp.CallToolRequest, textInput) (*mcp.CallToolResult, any, error) {
		return nil, nil, &jsonrpc.Error{Code: -32042, Message: "visit first", Data: json.RawMessage(`{"elicitations":[{"mode":"url","elicitationId":"7","url":"https://a.test","message":"here"}]}`)}
	})
	mcp.AddTool(s, &mcp.Tool{Name: "log"}, func(ctx context.Context, r *mcp.CallToolRequest, in textInput) (*mcp.CallToolResult, any, error) {
		_ = r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: in.Text}) //nolint:staticcheck // bundles of older revisions log
		return textResult("logged")
	})
	mcp.AddTool(s, &mcp.Tool{Name: "touch"}, func(ctx context.Context, _ *mcp.CallToolRequest, in textInput) (*mcp.CallToolResult, any, error) {
		return nil, nil, s.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: in.Text})
	})
}

// inside describes a bundle's environment as the bundle sees it.
type inside struct {
	PID  int
	Dir  string
	Args []string
	Env  []string
}

func (i inside) env(name string) (string, bool) {
	for _, e := range i.Env {
		if value, ok := strings.CutPrefix(e, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// manifest returns a manifest for the test bundle. more replaces or adds keys.
func manifest(t *testing.T, name, mode string, more map[string]any) []byte {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]any{
		"manifest_version": "0.3", "name": name, "version": "1.2.3", "description": "a test bundle",
		"author": map[string]string{"name": "tests"},
		"server": map[string]any{
			"type": "binary", "entry_point": "server",
			"mcp_config": map[string]any{"command": self, "args": []string{bundleArg, mode}, "env": map[string]string{}},
		},
	}
	maps.Copy(m, more)
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// bundleDir creates a bundle directory.
func bundleDir(t *testing.T, name, mode string, more map[string]any) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "manifest.json"), manifest(t, name, mode, more), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// bundleFile creates an .mcpb file.
func bundleFile(t *testing.T, name, mode string, more map[string]any) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.mcpb")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	for file, body := range map[string][]byte{"manifest.json": manifest(t, name, mode, more), "server/readme.txt": []byte("read me")} {
		w, err := z.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(body); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// alive reports whether a process is running. A zombie is considered not running.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

// expectGone waits for all of the processes to exit.
func expectGone(t *testing.T, pids ...int) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprintf("the processes %v have exited", pids), func() bool { return !slices.ContainsFunc(pids, alive) })
}
