package mcphttp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tools"
)

// pageBytes is where a page of tools/list ends: more than any real workspace needs, and less than any
// client's limit.
const pageBytes = 8 << 20

// rawResult is a result that reaches the client as it is: the SDK marshals what MarshalJSON gives,
// so fields it does not know are not lost.
type rawResult struct {
	*mcp.CallToolResult
	raw json.RawMessage
}

// MarshalJSON returns the result as it was built.
func (r rawResult) MarshalJSON() ([]byte, error) { return r.raw, nil }

// listTools is tools/list: what this request's caller sees, in the namespace's order.
func (e *Endpoint) listTools(_ context.Context, k *call) (json.RawMessage, error) {
	if list, whole := e.wholeList(k); whole {
		return slices.Concat([]byte(listOpen), list, []byte{'}'}), nil
	}
	all := e.o.Tools.List(k.caller)
	if cursor := k.fields["cursor"]; cursor != nil {
		from, ok := after(all, cursor)
		if !ok {
			return nil, invalidParams("cursor is not one that tools/list gave; start again without it")
		}
		all = all[from:]
	}
	raw, n := []byte(listOpen+"["), 0
	for n < len(all) && (n == 0 || len(raw)+len(all[n].Raw) < pageBytes) {
		if n > 0 {
			raw = append(raw, ',')
		}
		raw = append(raw, all[n].Raw...)
		n++
	}
	raw = append(raw, ']')
	if n < len(all) {
		raw = append(raw, `,"nextCursor":"`+base64.RawURLEncoding.EncodeToString([]byte(all[n-1].Name))+`"`...)
	}
	return append(raw, '}'), nil
}

// listOpen is what stands before the tools in the result of tools/list.
const listOpen = `{"tools":`

// wholeList is the tools as the namespace keeps them marshalled, if they make one page.
func (e *Endpoint) wholeList(k *call) (json.RawMessage, bool) {
	if k.fields["cursor"] != nil {
		return nil, false
	}
	list := e.o.Tools.ListJSON(k.caller, core.KindTools)
	return list, len(list) < pageBytes
}

// after finds where the page after a cursor starts. A cursor is the last name of the page before.
func after(all []tools.Listed, cursor json.RawMessage) (int, bool) {
	var text string
	if json.Unmarshal(cursor, &text) != nil {
		return 0, false
	}
	name, err := base64.RawURLEncoding.DecodeString(text)
	at := slices.IndexFunc(all, func(t tools.Listed) bool { return t.Name == string(name) })
	return at + 1, err == nil && at >= 0
}

// callTool is tools/call. Arguments, _meta and the result are never decoded here.
func (e *Endpoint) callTool(ctx context.Context, k *call) (json.RawMessage, error) {
	call, err := e.toolCall(k)
	if err != nil {
		return nil, err
	}
	result, err := e.o.Tools.Call(ctx, k.caller, call)
	return e.toolResult(ctx, k, result, err)
}

// toolCall is what a request asks of the namespace.
func (e *Endpoint) toolCall(k *call) (tools.Call, error) {
	name := textOf(k.fields["name"])
	if name == "" {
		return tools.Call{}, invalidParams("params.name must be the name of a tool")
	}
	return tools.Call{
		Name: name, Arguments: k.fields["arguments"], Meta: k.fields["_meta"], Agent: true, Notify: k.notify, From: k.from(),
		InputResponses: k.fields["inputResponses"], RequestState: k.fields["requestState"],
	}, nil
}

// toolResult is what the client is told of a tool's result, or of why there is none.
func (e *Endpoint) toolResult(ctx context.Context, k *call, result json.RawMessage, err error) (json.RawMessage, error) {
	if err == nil {
		return result, nil
	}
	name := textOf(k.fields["name"])
	if known, ok := asError(err); ok && e.forTheModel(k, name, known.Code) {
		return badInput(known)
	}
	return nil, e.refusal(ctx, k, name, err)
}

// forTheModel reports whether a refusal is about how the tool was used: a tool that the caller sees
// is never unknown to it, whatever of it the caller may not do.
func (e *Endpoint) forTheModel(k *call, name string, code core.Code) bool {
	switch code {
	case core.CodeInvalidInput, core.CodeBadRequest:
		return true
	case core.CodeForbidden, core.CodeFeatureDisabled:
		return slices.ContainsFunc(e.o.Tools.List(k.caller), func(t tools.Listed) bool { return t.Name == name })
	default:
		return false
	}
}

// badInput tells about arguments that do not fit as a result, so that a model can read what to do
// better (MCP 2025-11-25, tools, error handling).
func badInput(err *core.Error) (json.RawMessage, error) {
	text := err.Message
	if details, e := json.Marshal(err.Details); e == nil && err.Details != nil {
		text += ": " + string(details)
	}
	return json.Marshal(&mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}})
}

// notify sends what an app says about a call to that call's own POST, in the app's order.
func (k *call) notify(n rpc.Notification) {
	if n.Method == "notifications/progress" && !k.progress {
		return // the client did not ask
	}
	k.out.notify(notificationBody(n.Method, n.Params))
}
