package mcphttp

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/tools"
)

// pageBytes is where a page of tools/list ends: more than any real workspace needs, and less than any
// client's limit.
const pageBytes = 8 << 20

// listTools is tools/list: what this request's caller sees, in the namespace's order.
func (e *Endpoint) listTools(k *call) ([][]byte, error) {
	if k.Param("cursor") == nil {
		if list := e.o.Tools.ListJSON(k.caller, k.from(), core.KindTools); len(list) < pageBytes {
			return [][]byte{[]byte(listOpen), list, {'}'}}, nil
		}
	}
	all := e.o.Tools.ListFor(k.caller, k.from())
	if cursor := k.Param("cursor"); cursor != nil {
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
	return [][]byte{append(raw, '}')}, nil
}

// listOpen is what stands before the tools in the result of tools/list.
const listOpen = `{"tools":`

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

// startTool is tools/call. Arguments, _meta and the result are never decoded here.
func (e *Endpoint) startTool(k *call) pending {
	name := rawjson.Text(k.Param("name"))
	if name == "" {
		return done(nil, invalidParams("params.name must be the name of a tool"))
	}
	p, err := e.o.Tools.Start(&k.context, k.caller, tools.Call{
		Name: name, Arguments: k.Param("arguments"), Meta: k.Param("_meta"), Agent: true, Notify: k.notify, From: k.from(),
		InputResponses: k.Param("inputResponses"), RequestState: k.Param("requestState"), Wake: k.Out.Wake,
	})
	if err != nil {
		return done(onePart(e.toolResult(k, name, nil, err)))
	}
	if len(k.Params) > keptParams {
		k.Release()
	}
	started := pending{wait: func() ([][]byte, error) {
		result, err := p.Wait(&k.context)
		k.failed = p.Failed()
		return onePart(e.toolResult(k, name, result, err))
	}}
	if p.Sent() {
		started.sent = p
	}
	return started
}

// toolResult is a tool's result, or why there is none.
func (e *Endpoint) toolResult(k *call, name string, result json.RawMessage, err error) (json.RawMessage, error) {
	if err == nil {
		return result, nil
	}
	if known, ok := errors.AsType[*core.Error](err); ok && e.forTheModel(k, name, known.Code) {
		k.failed = true
		return badInput(known)
	}
	return nil, e.refusal(&k.context, k, name, err)
}

// forTheModel reports whether a refusal is about how the tool was used: a tool that the caller sees
// is never unknown to it, whatever of it the caller may not do.
func (e *Endpoint) forTheModel(k *call, name string, code core.Code) bool {
	switch code {
	case core.CodeInvalidInput, core.CodeBadRequest, core.CodeToolHeld, core.CodeApprovalPending, core.CodeApprovalRefused:
		return true
	case core.CodeForbidden, core.CodeFeatureDisabled:
		return slices.ContainsFunc(e.o.Tools.ListFor(k.caller, k.from()), func(t tools.Listed) bool { return t.Name == name })
	default:
		return false
	}
}

// badInput reports arguments that do not fit as a result, so that a model can read what to do better
// (MCP 2025-11-25, tools, error handling).
func badInput(err *core.Error) (json.RawMessage, error) {
	text := err.Message
	if details, e := json.Marshal(err.Details); e == nil && err.Details != nil {
		text += ": " + string(details)
	}
	return json.Marshal(&mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}})
}
