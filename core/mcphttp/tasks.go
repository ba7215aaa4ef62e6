package mcphttp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tools"
)

// The extension io.modelcontextprotocol/tasks (SEP-2663). Each request declares it again, so only clients of the
// stateless revision can use it.

const extensionTasks = interact.TasksExtension

// supportsTasks reports whether a request declares the extension.
func (m *Message) supportsTasks() bool {
	meta := m.Param("_meta")
	if !bytes.Contains(meta, []byte(extensionTasks)) {
		return false
	}
	declared, _ := rawjson.ListOf(meta)
	var can struct {
		Extensions map[string]json.RawMessage `json:"extensions"`
	}
	if json.Unmarshal(declared.Get(mcp.MetaKeyClientCapabilities), &can) != nil {
		return false
	}
	settings := can.Extensions[extensionTasks]
	return len(settings) > 0 && settings[0] == '{'
}

// undeclared returns the fault for a request that needs the extension but does not declare it.
func undeclared() *fault {
	f := badRequest(mcp.CodeMissingRequiredClientCapabilities, "Missing required client capability")
	f.data = encode(map[string]any{"requiredCapabilities": map[string]any{"extensions": map[string]any{extensionTasks: empty()}}})
	return f
}

// taskOutcome returns the function that turns the outcome of a call into the response that its client would have
// received.
func (e *Endpoint) taskOutcome(caller core.Caller, name string) tools.Outcome {
	k := &call{Message: Message{Method: "tools/call"}, caller: caller, context: e.root}
	return func(result json.RawMessage, err error) (json.RawMessage, *rpc.Error) {
		if err != nil {
			called := name
			if called == "" { // the task belongs to an earlier call, whose tool is not known here
				called = "the tool of the task"
			}
			result, err = e.toolError(k, tools.Call{Name: called}, err)
		}
		if err == nil {
			return result, nil
		}
		if failure, ok := errors.AsType[*rpc.Error](err); ok {
			return nil, failure
		}
		return nil, &rpc.Error{Code: rpc.CodeInternalError, Message: err.Error()}
	}
}

// handleTask handles tasks/get, tasks/update and tasks/cancel. Other callers' tasks are reported as unknown.
func (e *Endpoint) handleTask(k *call) ([][]byte, error) {
	if !k.supportsTasks() {
		f := undeclared()
		return nil, &rpc.Error{Code: f.code, Message: f.message, Data: f.data}
	}
	id := rawjson.Text(k.Param("taskId"))
	if id == "" {
		return nil, invalidParams("params.taskId must be the id of a task")
	}
	switch k.Method {
	case "tasks/get":
		result, err := e.o.Tools.Task(k.context, k.caller, id, e.taskOutcome(k.caller, ""))
		if err != nil {
			return nil, e.refusal(k, id, err)
		}
		return onePart(result, nil)
	case "tasks/update":
		responses := k.Param("inputResponses")
		if len(responses) == 0 || responses[0] != '{' {
			return nil, invalidParams("params.inputResponses must be an object")
		}
		return e.done(k, e.o.Tools.AnswerTask(k.context, k.caller, id, responses))
	}
	return e.done(k, e.o.Tools.CancelTask(k.context, k.caller, id))
}

// maxWatched is how many tasks one subscriptions/listen request may watch. Each costs a query every two seconds.
const maxWatched = 100

// watchable returns the caller's tasks among ids, at most maxWatched. It leaves out unknown tasks and other callers'
// tasks.
func (e *Endpoint) watchable(ctx context.Context, caller core.Caller, ids []string) (granted []string) {
	ctx, cancel := context.WithTimeout(ctx, gateTimeout)
	defer cancel()
	for _, id := range ids[:min(len(ids), maxWatched)] {
		if slices.Contains(granted, id) {
			continue
		}
		if _, err := e.o.Tools.Task(ctx, caller, id, e.taskOutcome(caller, "")); err != nil {
			e.log.Debug("task not watched", "error", err)
			continue
		}
		granted = append(granted, id)
	}
	return granted
}

// watchTasks sends the states of tasks to a listener until they have ended or ctx ends. If only is true, the listener
// listens to nothing else, so watchTasks closes it at the end.
func (e *Endpoint) watchTasks(ctx context.Context, caller core.Caller, ids []string, l *listener, only bool) {
	e.o.Tools.WatchTasks(ctx, caller, ids, e.taskOutcome(caller, ""), func(task json.RawMessage) {
		l.Push(rpc.Notification{Method: "notifications/tasks", Params: l.tagged(task)}.Encode())
	})
	if only {
		l.Close()
	}
}

// Tasks is the part of Tools for clients that support tasks. *tools.Namespace implements it and documents the methods.
type Tasks interface {
	CallTask(ctx context.Context, c core.Caller, call tools.Call, outcome tools.Outcome) (result json.RawMessage, failed bool, err error)
	Task(ctx context.Context, c core.Caller, id string, outcome tools.Outcome) (json.RawMessage, error)
	WatchTasks(ctx context.Context, c core.Caller, ids []string, outcome tools.Outcome, changed func(task json.RawMessage))
	AnswerTask(ctx context.Context, c core.Caller, id string, responses json.RawMessage) error
	CancelTask(ctx context.Context, c core.Caller, id string) error
	EndTasks(userID string, revoked func(core.Caller) bool)
}
