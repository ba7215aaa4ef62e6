package tools

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// Call is one call of a tool.
type Call struct {
	Name       string                 // server__tool
	Arguments  json.RawMessage        // a JSON object; nil means {}
	Meta       json.RawMessage        // the request's _meta, passed on; nil when absent
	Agent      bool                   // a model's or an MCP client's call, which may emit data.changed
	CheckInput bool                   // check Arguments against the tool's schema first
	Notify     func(rpc.Notification) // gets what the app says about the call, in wire order; nil for a caller that wants none
	From

	// The answers to an earlier result that asked for input, and its state (2026-07-28); nil when absent.
	InputResponses, RequestState json.RawMessage
}

// Call calls a tool in c's workspace and returns its CallToolResult as the app wrote it.
//
// The checks, in this order (contract part 6): core.CodeToolNotFound, CodeFeatureDisabled,
// CodeForbidden, CodeInvalidInput. A JSON-RPC error of the app comes back as *rpc.Error; a
// tool's own failure is a result whose isError is true, not an error.
func (n *Namespace) Call(ctx context.Context, c core.Caller, call Call) (json.RawMessage, error) {
	d, err := n.reach(ctx, c, &call)
	if err != nil {
		return nil, err
	}
	if d.server == systemServer {
		return n.callSystem(ctx, c, d.name, call)
	}
	n.louder(ctx, c, call.From, call.Meta)
	return d.finish(n.apps.Call(ctx, c.Workspace.ID, d.server, d.request(c, &call)))
}

func (n *Namespace) callSystem(ctx context.Context, c core.Caller, name string, call Call) (json.RawMessage, error) {
	for _, s := range n.system {
		if s.Name != name {
			continue
		}
		if err := n.allowed(s, c); err != nil {
			return nil, err
		}
		if err := n.inputs.check(s.tool(), call.Arguments); err != nil {
			return nil, err
		}
		return s.run(ctx, c, call.Arguments)
	}
	return nil, notFound(call.Name)
}

func notFound(name string) error {
	return core.Errorf(core.CodeToolNotFound, "there is no tool %q in this workspace", name)
}

// params builds the params of tools/call around arguments that are never decoded. quoted is the
// tool's bare name as JSON.
func params(quoted []byte, call *Call) json.RawMessage {
	p := make([]byte, 0, len(quoted)+len(call.Arguments)+len(call.Meta)+len(call.InputResponses)+len(call.RequestState)+80)
	p = append(append(p, `{"name":`...), quoted...)
	p = append(append(p, `,"arguments":`...), call.Arguments...)
	for _, m := range []struct {
		name  string
		value json.RawMessage
	}{{"_meta", call.Meta}, {"inputResponses", call.InputResponses}, {"requestState", call.RequestState}} {
		if len(m.value) > 0 {
			p = append(append(append(p, `,"`...), m.name...), `":`...)
			p = append(p, m.value...)
		}
	}
	return append(p, '}')
}

// failed reads whether a CallToolResult is an error, or no result yet but a question, decoding only
// those that mention one.
func failed(result json.RawMessage) bool {
	if !bytes.Contains(result, []byte(`"isError"`)) && !bytes.Contains(result, []byte(`"input_required"`)) {
		return false
	}
	var r struct {
		IsError    bool   `json:"isError"`
		ResultType string `json:"resultType"`
	}
	return json.Unmarshal(result, &r) == nil && (r.IsError || r.ResultType == "input_required")
}
