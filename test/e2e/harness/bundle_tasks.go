package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/internal/testkit"
)

// LongTask is the run time in seconds of a task that must continue after a server was killed.
var LongTask = flag.Float64("task-seconds", 5, "run time in seconds of the tasks that must continue after a server was killed")

// TaskApp is an app without an SDK. It supports only MCP 2026-07-28 and the extension for tasks. It has the tools that
// the conformance suite prescribes, and the tool named wait, which takes several seconds but is not a task. It also has
// a skill with two files.
type TaskApp struct {
	mu    sync.Mutex
	tasks map[string]*appTask
	count int
}

// appTask is a task of a TaskApp.
type appTask struct {
	tool    string
	done    time.Time
	text    string
	open    map[string]bool // the input requests without an answer
	status  string          // "cancelled", or "" if the status follows from the other fields
	created time.Time
}

const (
	tasksExtension  = "io.modelcontextprotocol/tasks"
	skillsExtension = "io.modelcontextprotocol/skills"
)

// tasksMain runs a TaskApp on standard input and output.
func tasksMain() int {
	app := &TaskApp{tasks: map[string]*appTask{}}
	var out sync.Mutex
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return 0
		}
		go func() {
			if answer := app.answer(context.Background(), line); answer != nil {
				out.Lock()
				defer out.Unlock()
				fmt.Printf("%s\n", answer)
			}
		}()
	}
}

// StartTaskApp starts a TaskApp that serves HTTP. It returns the app and its address.
func StartTaskApp(t *testing.T) (app *TaskApp, url string) {
	t.Helper()
	app = &TaskApp{tasks: map[string]*appTask{}}
	s := httptest.NewServer(app)
	t.Cleanup(s.Close)
	return app, s.URL
}

// Cancelled returns the number of cancelled tasks.
func (a *TaskApp) Cancelled() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.tasks {
		if t.status == "cancelled" {
			n++
		}
	}
	return n
}

// ServeHTTP implements http.Handler.
func (a *TaskApp) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var named struct {
		Method string
		Params struct {
			TaskID string `json:"taskId"`
		}
	}
	_ = json.Unmarshal(body, &named) // answer reports the error
	if named.Params.TaskID != "" && (r.Header.Get("Mcp-Name") != named.Params.TaskID || r.Header.Get("Mcp-Method") != named.Method) {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	answer := a.answer(r.Context(), body)
	if answer == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer)
}

// taskMessage is a request to a TaskApp.
type taskMessage struct {
	ID     json.RawMessage
	Method string
	Params struct {
		Meta map[string]json.RawMessage `json:"_meta"`
		Name string
		Task string `json:"taskId"`
		URI  string

		Arguments struct {
			Name    string
			Seconds float64
			Label   string
		}
		Responses map[string]json.RawMessage `json:"inputResponses"`
	}
}

// declares reports whether the request's client supports tasks.
func (m taskMessage) declares() bool {
	var can struct{ Extensions map[string]json.RawMessage }
	_ = json.Unmarshal(m.Params.Meta["io.modelcontextprotocol/clientCapabilities"], &can) // without capabilities, the client supports no tasks
	return can.Extensions[tasksExtension] != nil
}

func (a *TaskApp) answer(ctx context.Context, message []byte) []byte {
	var m taskMessage
	if json.Unmarshal(message, &m) != nil || m.ID == nil {
		return nil
	}
	var output map[string]any
	if string(m.Params.Meta["io.modelcontextprotocol/protocolVersion"]) != `"2026-07-28"` {
		output = map[string]any{"error": map[string]any{"code": -32022, "message": "unsupported protocol version", "data": map[string]any{"supported": []string{"2026-07-28"}}}}
	} else if result, failure := a.result(ctx, m); failure != nil {
		output = map[string]any{"error": failure}
	} else {
		output = map[string]any{"result": result}
	}
	output["jsonrpc"], output["id"] = "2.0", m.ID
	raw, _ := json.Marshal(output) // cannot fail for maps of strings and numbers
	return raw
}

func (a *TaskApp) result(ctx context.Context, m taskMessage) (result, failure map[string]any) {
	switch m.Method {
	case "server/discover":
		return map[string]any{
			"resultType": "complete", "supportedVersions": []string{"2026-07-28"},
			"capabilities": map[string]any{"tools": map[string]any{}, "resources": map[string]any{}, "extensions": map[string]any{
				tasksExtension: map[string]any{}, skillsExtension: map[string]any{},
			}},
			"_meta": map[string]any{"io.modelcontextprotocol/serverInfo": map[string]any{"name": "tasks", "version": "1.0.0"}},
		}, nil
	case "tools/list":
		var tools []any
		for _, name := range []string{"greet", "wait", "slow_compute", "failing_job", "protocol_error_job", "confirm_delete", "multi_input", "test_tool_with_task"} {
			tools = append(tools, map[string]any{"name": name, "description": "A tool for the tests.", "inputSchema": map[string]any{"type": "object"}})
		}
		return map[string]any{"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": tools}, nil
	case "tools/call":
		return a.call(ctx, m)
	case "tasks/get", "tasks/update", "tasks/cancel":
		return a.task(m)
	case "resources/list", "resources/read", "skills/list", "skills/get":
		return skillResult(m.Method, m.Params.URI)
	}
	return map[string]any{"resultType": "complete"}, nil
}

func textResult(text string) map[string]any {
	return map[string]any{"resultType": "complete", "content": []any{map[string]any{"type": "text", "text": text}}}
}

// pause waits until the duration has passed or the caller has disconnected.
func pause(ctx context.Context, duration time.Duration) {
	select {
	case <-time.After(duration):
	case <-ctx.Done():
	}
}

func elicit(message string) map[string]any {
	return map[string]any{"method": "elicitation/create", "params": map[string]any{
		"mode": "form", "message": message, "requestedSchema": map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}},
	}}
}

func (a *TaskApp) call(ctx context.Context, m taskMessage) (result, failure map[string]any) {
	in, t := m.Params.Arguments, &appTask{tool: m.Params.Name, open: map[string]bool{}, text: "done"}
	duration := time.Duration(in.Seconds * float64(time.Second))
	switch m.Params.Name {
	case "greet":
		return textResult("Hello, " + in.Name + "!"), nil
	case "wait":
		pause(ctx, duration)
		return textResult("waited"), nil
	case "slow_compute":
		if !m.declares() {
			pause(ctx, duration)
			return textResult("computed " + in.Label), nil
		}
		t.text = "computed " + in.Label
	case "confirm_delete":
		t.open["confirm"] = true
	case "multi_input":
		t.open["first"], t.open["second"] = true, true
	case "test_tool_with_task":
		var given struct{ Content struct{ Name string } }
		if m.Params.Responses["user_name"] == nil {
			return map[string]any{"resultType": "input_required", "inputRequests": map[string]any{"user_name": elicit("Who are you?")}}, nil
		}
		_ = json.Unmarshal(m.Params.Responses["user_name"], &given) // a missing name leaves the text without one
		t.text = "Hello, " + given.Content.Name
	}
	if !m.declares() {
		return nil, map[string]any{"code": -32021, "message": "Missing required client capability", "data": map[string]any{
			"requiredCapabilities": map[string]any{"extensions": map[string]any{tasksExtension: map[string]any{}}},
		}}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count++
	id := fmt.Sprint("own-", a.count)
	t.created, t.done = time.Now(), time.Now().Add(duration)
	a.tasks[id] = t
	handle := t.members(id, "working")
	handle["resultType"] = "task"
	return handle, nil
}

func (t *appTask) members(id, status string) map[string]any {
	return map[string]any{
		"resultType": "complete", "taskId": id, "status": status, "ttlMs": nil, "pollIntervalMs": 100,
		"createdAt": t.created.Format(time.RFC3339), "lastUpdatedAt": t.created.Format(time.RFC3339),
	}
}

func (a *TaskApp) task(m taskMessage) (result, failure map[string]any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	id := m.Params.Task
	t := a.tasks[id]
	switch {
	case t == nil || !m.declares():
		return nil, map[string]any{"code": -32602, "message": "Failed to retrieve task: Task not found"}
	case m.Method == "tasks/cancel":
		t.status = "cancelled"
		return map[string]any{"resultType": "complete"}, nil
	case m.Method == "tasks/update":
		for key := range m.Params.Responses {
			delete(t.open, key)
		}
		return map[string]any{"resultType": "complete"}, nil
	case t.status != "":
		return t.members(id, t.status), nil
	case len(t.open) > 0:
		all, requests := t.members(id, "input_required"), map[string]any{}
		for key := range t.open {
			requests[key] = elicit(key)
		}
		all["inputRequests"] = requests
		return all, nil
	case time.Now().Before(t.done):
		return t.members(id, "working"), nil
	case t.tool == "protocol_error_job":
		all := t.members(id, "failed")
		all["error"] = map[string]any{"code": -32603, "message": "the job broke the protocol"}
		return all, nil
	}
	all, done := t.members(id, "completed"), textResult(t.text)
	if t.tool == "failing_job" {
		done["isError"] = true
	}
	all["result"] = done
	return all, nil
}

// TaskCapabilities is the JSON text of the capabilities of a client that supports tasks.
const TaskCapabilities = `{"elicitation":{},"extensions":{"` + tasksExtension + `":{}}}`

// Stateless sends a request with MCP 2026-07-28 to the default workspace and returns the response. name is the value of
// the header Mcp-Name. If it is "", the request has no such header. capabilities are the client's capabilities.
func (s *Server) Stateless(t *testing.T, method, name, capabilities string, params map[string]any, headers ...string) map[string]any {
	t.Helper()
	all := s.StatelessStream(t, method, name, capabilities, params, headers...)
	return all[len(all)-1]
}

// StatelessStream is like Stateless, for a response with several messages. It returns all messages after the response
// has ended.
func (s *Server) StatelessStream(t *testing.T, method, name, capabilities string, params map[string]any, headers ...string) (messages []map[string]any) {
	t.Helper()
	all := map[string]any{"_meta": map[string]any{
		"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": json.RawMessage(capabilities),
	}}
	maps.Copy(all, params)
	headers = append(headers, AcceptHeader, "MCP-Protocol-Version: 2026-07-28", "Mcp-Method: "+method)
	if name != "" {
		headers = append(headers, "Mcp-Name: "+name)
	}
	a := s.Do(t, "POST", "/mcp/"+Workspace, map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": all}, headers...)
	for line := range strings.Lines("\n" + a.Body) {
		if line = strings.TrimPrefix(line, "data: "); !strings.HasPrefix(line, "{") {
			continue
		}
		var message map[string]any
		if err := json.Unmarshal([]byte(line), &message); err != nil {
			t.Fatalf("%s: %d %s", method, a.Status, a.Body)
		}
		messages = append(messages, message)
	}
	if len(messages) == 0 {
		t.Fatalf("%s: %d %s", method, a.Status, a.Body)
	}
	return messages
}

// CallForTask calls a tool as a client that supports tasks and returns the result.
func (s *Server) CallForTask(t *testing.T, tool string, arguments map[string]any, headers ...string) map[string]any {
	t.Helper()
	message := s.Stateless(t, "tools/call", tool, TaskCapabilities, map[string]any{"name": tool, "arguments": arguments}, headers...)
	result, ok := message["result"].(map[string]any)
	if !ok {
		t.Fatalf("%s: %v", tool, message)
	}
	return result
}

// Task returns the result of tasks/get.
func (s *Server) Task(t *testing.T, id string, headers ...string) map[string]any {
	t.Helper()
	message := s.Stateless(t, "tasks/get", id, TaskCapabilities, map[string]any{"taskId": id}, headers...)
	result, ok := message["result"].(map[string]any)
	if !ok {
		t.Fatalf("task %s: %v", id, message)
	}
	return result
}

// AwaitTask waits until a task has one of the given states and returns the task.
func (s *Server) AwaitTask(t *testing.T, id string, states ...string) (task map[string]any) {
	t.Helper()
	if !testkit.Within(Timeout+time.Duration(*LongTask)*time.Second, func() bool {
		task = s.Task(t, id)
		return slices.Contains(states, fmt.Sprint(task["status"]))
	}) {
		t.Fatalf("the task is %v", task)
	}
	return task
}
