package mcphttp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/tools"
)

// A page of tools/list ends after this many tools or bytes: more than any real workspace has, and
// less than any client's limit.
const (
	pageTools = 2000
	pageBytes = 8 << 20
)

// rawList and rawCall are results that reach the client as they are: the SDK marshals what
// MarshalJSON gives, so fields it does not know are not lost.
type rawList struct {
	*mcp.ListToolsResult
	raw json.RawMessage
}

// MarshalJSON returns the result as it was built.
func (r rawList) MarshalJSON() ([]byte, error) { return r.raw, nil }

type rawCall struct {
	*mcp.CallToolResult
	raw json.RawMessage
}

// MarshalJSON returns the result as the app wrote it.
func (r rawCall) MarshalJSON() ([]byte, error) { return r.raw, nil }

// listTools is tools/list: what this request's caller sees, in the namespace's order.
func (e *Endpoint) listTools(k *call) (mcp.Result, error) {
	all := e.o.Tools.List(k.caller)
	if cursor := k.fields["cursor"]; cursor != nil {
		from, ok := after(all, cursor)
		if !ok {
			return nil, invalidParams("cursor is not one that tools/list gave; start again without it")
		}
		all = all[from:]
	}
	raw, n := []byte(`{"tools":[`), 0
	for n < len(all) && n < pageTools && (n == 0 || len(raw)+len(all[n].Raw) < pageBytes) {
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
	return rawList{&mcp.ListToolsResult{}, append(raw, '}')}, nil
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
func (e *Endpoint) callTool(ctx context.Context, k *call) (mcp.Result, error) {
	var name string
	if json.Unmarshal(k.fields["name"], &name) != nil || name == "" {
		return nil, invalidParams("params.name must be the name of a tool")
	}
	result, err := e.o.Tools.Call(ctx, k.caller, tools.Call{
		Name: name, Arguments: k.fields["arguments"], Meta: k.fields["_meta"], Agent: true, Notify: k.notify, From: k.from(),
		InputResponses: k.fields["inputResponses"], RequestState: k.fields["requestState"],
	})
	if known, ok := asError(err); ok && (known.Code == core.CodeInvalidInput || known.Code == core.CodeBadRequest) {
		return badInput(known), nil
	}
	if err != nil {
		return nil, e.refusal(ctx, k, name, err)
	}
	return rawCall{&mcp.CallToolResult{}, result}, nil
}

// badInput tells about arguments that do not fit as a result, so that a model can read what to do
// better (MCP 2025-11-25, tools, error handling).
func badInput(err *core.Error) mcp.Result {
	text := err.Message
	if details, e := json.Marshal(err.Details); e == nil && err.Details != nil {
		text += ": " + string(details)
	}
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// notify sends what an app says about a call to that call's own POST, in the app's order.
func (k *call) notify(n link.Notification) {
	if n.Method == "notifications/progress" && !k.progress {
		return // the client did not ask
	}
	k.out.notify(notificationBody(n.Method, n.Params))
}
