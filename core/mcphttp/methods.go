package mcphttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tools"
)

// handle makes a call. It returns the result in parts, so that text the namespace has already encoded is copied only
// once. A panic fails only the call. The methods of all revisions, stateful and stateless, are listed here.
func (e *Endpoint) handle(k *call) (result [][]byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			e.log.Error("call panicked", "method", k.Method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			result, err = nil, internalError()
		}
	}()
	switch k.Method {
	case "tools/call":
		return onePart(e.callTool(k))
	case "tools/list":
		return e.list(k, core.KindTools)
	case "prompts/list":
		return e.list(k, core.KindPrompts)
	case "resources/list":
		return e.list(k, core.KindResources)
	case "resources/templates/list":
		return e.list(k, core.KindTemplates)
	case "prompts/get":
		if err := k.checkArguments(); err != nil {
			return nil, err
		}
		return e.passOn(k, e.o.Tools.GetPrompt)
	case "resources/read":
		return e.passOn(k, e.o.Tools.ReadResource)
	case "completion/complete":
		return e.passOn(k, e.o.Tools.Complete)
	case "skills/list":
		return e.passOn(k, e.o.Tools.ListSkills)
	case "skills/get":
		return e.passOn(k, e.o.Tools.GetSkill)
	}
	if k.session == nil {
		switch k.Method {
		case "server/discover":
			return onePart(e.discover(k.caller), nil)
		case "tasks/get", "tasks/update", "tasks/cancel":
			return e.handleTask(k)
		}
		return nil, unknownMethod(k)
	}
	switch k.Method {
	case "ping":
		return onePart(empty(), nil)
	case "resources/subscribe":
		return e.subscription(k, k.session.Tools.Subscribe)
	case "resources/unsubscribe":
		return e.subscription(k, k.session.Tools.Unsubscribe)
	case "logging/setLevel":
		return e.setLevel(k)
	case "initialize":
		return nil, &rpc.Error{Code: rpc.CodeInvalidRequest, Message: "duplicate initialize: this session is already open; send initialize without Mcp-Session-Id to open another one"}
	}
	if strings.HasPrefix(k.Method, "notifications/") {
		return nil, &rpc.Error{Code: rpc.CodeInvalidRequest, Message: "a notification has no id"}
	}
	return nil, unknownMethod(k)
}

func onePart(result json.RawMessage, err error) ([][]byte, error) { return [][]byte{result}, err }

func unknownMethod(k *call) error {
	return &rpc.Error{Code: rpc.CodeMethodNotFound, Message: "Method not found: " + clip(k.Method)}
}

// callTool handles tools/call. It never decodes the arguments, _meta or the result.
func (e *Endpoint) callTool(k *call) (result json.RawMessage, err error) {
	name := rawjson.Text(k.Param("name"))
	if name == "" {
		return nil, invalidParams("params.name must be the name of a tool")
	}
	if err := k.checkArguments(); err != nil {
		return nil, err
	}
	request := tools.Call{
		Name: name, Arguments: k.Param("arguments"), Meta: k.Param("_meta"), Agent: true, Notify: k.notify, From: k.from(),
		InputResponses: k.Param("inputResponses"), RequestState: k.Param("requestState"),
	}
	supportsTasks := k.session == nil && k.supportsTasks()
	k.Release() // the body may be large, and the app may take a long time
	if supportsTasks {
		result, k.failed, err = e.o.Tools.CallTask(k.context, k.caller, request, e.taskOutcome(k.caller, request.Name))
	} else {
		result, k.failed, err = e.o.Tools.Call(k.context, k.caller, request)
	}
	if err != nil {
		return e.toolError(k, request, err)
	}
	return result, nil
}

// checkArguments checks the arguments of a tool call or a prompt. null is treated as absent.
func (k *call) checkArguments() error {
	if arguments := k.Param("arguments"); arguments != nil && arguments[0] != '{' && string(arguments) != "null" {
		return invalidParams("params.arguments must be an object")
	}
	return nil
}

// toolError returns the response to a failed tool call: a result for the model to read, or an error.
func (e *Endpoint) toolError(k *call, request tools.Call, err error) (json.RawMessage, error) {
	if known, ok := errors.AsType[*core.Error](err); ok && e.isForModel(k, request.Name, known.Code) {
		k.failed = true
		return badInput(known)
	}
	return nil, e.refusal(k, e.o.Tools.Called(request), err)
}

// isForModel reports whether a refusal is about how the tool was used, and should be a result for the model to read. A
// tool that the caller sees is never reported as unknown, even if the caller may not use it.
func (e *Endpoint) isForModel(k *call, name string, code core.Code) bool {
	switch code {
	case core.CodeInvalidInput, core.CodeBadRequest, core.CodeToolHeld, core.CodeApprovalPending, core.CodeApprovalRefused, core.CodeLoginNeeded:
		return true
	case core.CodeForbidden, core.CodeFeatureDisabled:
		from := k.from()
		from.Surface = tools.SurfaceFull
		return slices.ContainsFunc(e.o.Tools.ListFor(k.caller, from), func(t tools.Listed) bool { return t.Name == name })
	default:
		return false
	}
}

// badInput returns a refusal as a tool result, so that a model can read how to correct the call (MCP 2025-11-25, tools,
// error handling).
func badInput(err *core.Error) (json.RawMessage, error) {
	text := err.Message
	// The message about a missing login already contains the address to open.
	if details, e := json.Marshal(err.Details); e == nil && err.Details != nil && err.Code != core.CodeLoginNeeded {
		text += ": " + string(details)
	}
	return json.Marshal(&mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}})
}

// from returns a call's origin: a session, whose client can be asked questions while the call runs, or a client without
// a session, which can be asked only through results.
func (k *call) from() tools.From {
	if k.session == nil {
		return tools.From{Stateless: true, Surface: k.surface, ShortResults: k.shortResults}
	}
	return tools.From{Session: k.session.Tools, Asker: asker{k}, Surface: k.surface, ShortResults: k.shortResults}
}

// asker sends an app's questions to the client of a call.
type asker struct{ call *call }

// Ask implements interact.Asker.
func (a asker) Ask(ctx context.Context, q rpc.Question) (json.RawMessage, error) {
	return a.call.session.Ask(ctx, a.call, q)
}

// passOn forwards a request to the app it belongs to.
func (e *Endpoint) passOn(k *call, to func(context.Context, core.Caller, tools.Request) (json.RawMessage, error)) ([][]byte, error) {
	request := tools.Request{Params: orEmpty(k.Params), Notify: k.notify, From: k.from()}
	k.Release()
	result, err := to(k.context, k.caller, request)
	if err != nil {
		return nil, e.refusal(k, k.Method, err)
	}
	return onePart(result, nil)
}

// subscription handles resources/subscribe and resources/unsubscribe. Updates reach only this session, on its GET
// stream.
func (e *Endpoint) subscription(k *call, do func(context.Context, string) error) ([][]byte, error) {
	uri := rawjson.Text(k.Param("uri"))
	if uri == "" {
		return nil, invalidParams("params.uri must be the URI of a resource")
	}
	return e.done(k, do(k.context, uri))
}

// setLevel handles logging/setLevel, which chooses the app log messages that this session receives.
func (e *Endpoint) setLevel(k *call) ([][]byte, error) {
	level := rawjson.Text(k.Param("level"))
	err := k.session.Tools.SetLevel(k.context, level)
	if err == nil {
		k.session.SetLevel(level)
		e.recordState(k.context, k.session)
	}
	return e.done(k, err)
}

// done returns an empty result, or the JSON-RPC error for err.
func (e *Endpoint) done(k *call, err error) ([][]byte, error) {
	if err != nil {
		return nil, e.refusal(k, k.Method, err)
	}
	return onePart(empty(), nil)
}

// recordState writes a session's changed state to the store, for a server that takes the session over. If the write
// fails, the session continues here, but another server would not know about the change.
func (e *Endpoint) recordState(ctx context.Context, s *session) {
	if !e.writer.Replaces() {
		return
	}
	unlock, err := e.moving.Lock(ctx, s.ID)
	if err != nil {
		return
	}
	defer unlock()
	lease := s.Lease()
	next := s.RecordFor(lease)
	if _, err := e.writer.Replace(ctx, next, lease, func() { s.Keep(next) }); err != nil {
		e.log.Warn("could not record a session's log level", "error", err)
	}
}

func empty() json.RawMessage { return json.RawMessage("{}") }
