package apps

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

// taskMain is a bundle whose only tool can only be called as a task (MCP 2025-11-25). The task completes on the third
// poll, unless the text is "forever".
func taskMain() int {
	polls, text := 0, ""
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return 0
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Task      json.RawMessage
				TaskID    string `json:"taskId"`
				Arguments struct{ Text string }
			}
		}
		if json.Unmarshal(line, &m) != nil || m.ID == nil {
			continue
		}
		reply := func(format string, args ...any) {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,`+format+"}\n", append([]any{m.ID}, args...)...)
		}
		switch m.Method {
		case "initialize":
			reply(`"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}},"serverInfo":{"name":"tasks","version":"1"}}`)
		case "tools/list":
			reply(`"result":{"tools":[{"name":"research","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}]}`)
		case "tools/call":
			if m.Params.Task == nil {
				reply(`"error":{"code":-32601,"message":"the tool requires a task"}`)
				continue
			}
			polls, text = 0, m.Params.Arguments.Text
			reply(`"result":{"task":{"taskId":"t1","status":"working","createdAt":"2026-01-01T00:00:00Z","ttl":null,"pollInterval":50}}`)
		case "tasks/get":
			polls++
			status := "working"
			if polls >= 3 && text != "forever" {
				status = "completed"
			}
			reply(`"result":{"taskId":%q,"status":%q,"statusMessage":"step %d","createdAt":"2026-01-01T00:00:00Z","ttl":null,"pollInterval":50}`, m.Params.TaskID, status, polls)
		case "tasks/result":
			reply(`"result":{"content":[{"type":"text","text":%q}]}`, "found "+text)
		case "tasks/cancel":
			_ = os.WriteFile(filepath.Join(getenv(instance.DataDirVariable), "cancelled"), []byte(m.Params.TaskID), 0o600)
			reply(`"result":{"taskId":%q,"status":"cancelled"}`, m.Params.TaskID)
		default:
			reply(`"error":{"code":-32601,"message":"method not found"}`)
		}
	}
}

func TestAToolThatRequiresATaskIsCalledLikeAnyOther(t *testing.T) {
	home := t.TempDir()
	y, _ := realManager(t, home, newMemoryRecords(), nil)
	open(t, y)
	install(t, y, source.Request{Path: bundleDir(t, "@test/notes", modeTask, nil)})
	tools := y.Tools(ws)
	if len(tools) != 1 || !tools[0].TaskOnly || strings.Contains(string(tools[0].Raw), "taskSupport") {
		t.Fatalf("the tools are %v", tools)
	}
	for name, client := range map[string]*interact.Client{
		"a session": interact.NewClient("session-1", false, nil), "a stateless client": interact.NewClient("", true, nil), "no client": nil,
	} {
		var steps []string
		raw, err := y.Call(t.Context(), ws, "notes", &interact.Call{Request: link.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"research","arguments":{"text":"x"},"_meta":{"progressToken":"p"}}`), Notify: func(n rpc.Notification) { steps = append(steps, string(n.Params)) }}, AsTask: true, Client: client})
		if err != nil || !strings.Contains(string(raw), "found x") {
			t.Fatalf("%s: got %s (%v)", name, raw, err)
		}
		want := []string{
			`{"message":"step 1","progress":1,"progressToken":"p"}`, `{"message":"step 2","progress":2,"progressToken":"p"}`, `{"message":"step 3","progress":3,"progressToken":"p"}`,
		}
		if !slices.Equal(steps, want) {
			t.Errorf("%s: the progress is %q", name, steps)
		}
	}
}

func TestATaskIsCancelledWithItsCall(t *testing.T) {
	home := t.TempDir()
	y, _ := realManager(t, home, newMemoryRecords(), nil)
	open(t, y)
	install(t, y, source.Request{Path: bundleDir(t, "@test/notes", modeTask, nil)})
	ctx, cancel := context.WithCancel(t.Context())
	_, err := y.Call(ctx, ws, "notes", &interact.Call{Request: link.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"research","arguments":{"text":"forever"},"_meta":{"progressToken":1}}`), Notify: func(rpc.Notification) { cancel() }}, AsTask: true})
	cancel()
	if err == nil {
		t.Fatal("a cancelled call has a result")
	}
	path := filepath.Join(source.LayoutOf(home, ws).DataDir("notes"), "cancelled")
	testkit.Eventually(t, "the task was cancelled", func() bool {
		id, err := os.ReadFile(path)
		return err == nil && string(id) == "t1"
	})
}
