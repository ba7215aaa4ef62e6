package mcphttp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tools"
)

// The extension io.modelcontextprotocol/tasks (SEP-2663). Each request declares it anew, so only clients of the stateless
// revision can use it.

// extensionTasks is the name of the extension.
const extensionTasks = interact.TasksExtension

// takesTasks reports whether a request declares the extension.
func (m *Message) takesTasks() bool {
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

// undeclared returns the fault for a request that needs the extension and does not declare it.
func undeclared() *fault {
	f := badRequest(mcp.CodeMissingRequiredClientCapabilities, "Missing required client capability")
	f.data = map[string]any{"requiredCapabilities": map[string]any{"extensions": map[string]any{extensionTasks: empty()}}}
	return f
}

// callOrTask makes a tool call. If the client takes tasks, the result may be a task.
func (e *Endpoint) callOrTask(k *call, request tools.Call, takesTasks bool) (json.RawMessage, bool, error) {
	if !takesTasks {
		return e.o.Tools.Call(k.context, k.caller, request)
	}
	return e.o.Tools.CallTask(k.context, k.caller, request, e.taskOutcome(k.caller, request.Name))
}

// taskOutcome returns the function that turns the outcome of a call into what its client would have received.
func (e *Endpoint) taskOutcome(caller core.Caller, name string) tools.Outcome {
	k := &call{Message: Message{Method: "tools/call"}, caller: caller, context: e.root}
	return func(result json.RawMessage, err error) (json.RawMessage, *rpc.Error) {
		if err != nil {
			called := name
			if called == "" { // the server asks again for the task of an earlier call
				called = "the tool of the task"
			}
			result, err = e.toolError(k, tools.Call{Name: called}, err)
		}
		if err == nil {
			return result, nil
		}
		failure := &rpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
		if known, ok := errors.AsType[*jsonrpc.Error](err); ok {
			failure = &rpc.Error{Code: int(known.Code), Message: known.Message, Data: known.Data}
		}
		return nil, failure
	}
}

// aboutTask handles tasks/get, tasks/update and tasks/cancel. A task of somebody else is reported as unknown.
func (e *Endpoint) aboutTask(k *call) ([][]byte, error) {
	if !k.takesTasks() {
		f := undeclared()
		return nil, &jsonrpc.Error{Code: f.code, Message: f.message, Data: encode(f.data)}
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

// Tasks is the part of Tools for clients that take tasks. *tools.Namespace implements it and documents the methods.
type Tasks interface {
	CallTask(ctx context.Context, c core.Caller, call tools.Call, outcome tools.Outcome) (result json.RawMessage, failed bool, err error)
	Task(ctx context.Context, c core.Caller, id string, outcome tools.Outcome) (json.RawMessage, error)
	AnswerTask(ctx context.Context, c core.Caller, id string, responses json.RawMessage) error
	CancelTask(ctx context.Context, c core.Caller, id string) error
	EndTasks(userID string, revoked func(core.Caller) bool)
}
