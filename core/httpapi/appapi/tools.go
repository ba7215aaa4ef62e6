package appapi

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/authn"
	"github.com/ropewalk/ropewalk/core/httpapi/httpio"
	"github.com/ropewalk/ropewalk/core/limits"
	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tools"
)

// ToolRequest is the request body of CallTool.
type ToolRequest struct {
	Server    string          `json:"server"`
	Tool      string          `json:"tool"`
	Account   string          `json:"account"`
	Arguments json.RawMessage `json:"arguments"`
	Meta      json.RawMessage `json:"_meta"`
}

// CallTool handles POST /v1/tools/call. It checks the body; package tools checks everything else. If the client
// disconnects, the call is cancelled.
func (h *Handlers) CallTool(c *fiber.Ctx, caller core.Caller, r ToolRequest) (any, error) {
	name, err := r.name()
	if err != nil {
		return nil, err
	}
	if len(r.Arguments) > 0 && r.Arguments[0] != '{' {
		return nil, core.Errorf(core.CodeBadRequest, "arguments must be an object")
	}
	if len(r.Meta) > 0 && r.Meta[0] != '{' {
		return nil, core.Errorf(core.CodeBadRequest, "_meta must be an object")
	}
	c.Context().SetUserValue(toolKey{}, h.Tools.Called(tools.Call{Name: name, Arguments: r.Arguments}))
	release, err := h.acquireCall(caller)
	if err != nil {
		return nil, err
	}
	defer release()
	cred, err := authn.FromRequest(c)
	if err != nil {
		return nil, err
	}
	connected, done := httpio.CancelOnDisconnect(c)
	defer done()
	ctx, stop := h.Authn.WatchCall(connected, cred, caller) // the call may wait for an approval, or for its app
	defer stop()
	result, _, err := h.Tools.Call(ctx, caller, tools.Call{Name: name, Account: r.Account, Arguments: r.Arguments, Meta: r.Meta, CheckInput: true})
	if refusal, ok := errors.AsType[*rpc.Error](err); ok {
		result, err = refused(refusal.Message), nil
	}
	if lost := context.Cause(ctx); err != nil && lost != nil && connected.Err() == nil {
		return nil, core.Wrap(core.CodeOf(lost), lost, "the call was stopped because its caller is no longer allowed to make it")
	}
	if err != nil {
		return nil, err
	}
	unread, err := h.Limits.HoldResponse(caller.User.ID, len(result)) // held until the response is counted
	if err != nil {
		return nil, err
	}
	defer unread()
	shaped, err := withResult(result)
	if err != nil {
		h.Log.Warn("an app returned an invalid tool result", "tool", name, "workspace", caller.Workspace.ID, "error", err)
		shaped, err = withResult(refused("the app returned an invalid tool result"))
	}
	if err != nil {
		return nil, err
	}
	return nil, httpio.JSON(c, shaped)
}

// acquireCall counts a tool call against the user's limits. Calls with any of the user's API keys count against the
// same limits.
func (h *Handlers) acquireCall(caller core.Caller) (release func(), err error) {
	if err := h.Limits.AllowCall(caller.User.ID); err != nil {
		return nil, err
	}
	return h.Limits.Acquire(limits.Calls, caller.User.ID)
}

type toolKey struct{}

// ToolOf returns the name of the tool that a request called, for the access log.
func ToolOf(ctx *fasthttp.RequestCtx) (string, bool) {
	name, known := ctx.UserValue(toolKey{}).(string)
	return name, known
}

// name returns the tool's full name. The tool field is a bare name when server is given, and a full name otherwise.
func (r ToolRequest) name() (string, error) {
	if r.Tool == "" {
		return "", core.Errorf(core.CodeBadRequest, "tool is missing; set it to the tool to call")
	}
	if r.Server != "" {
		return r.Server + "__" + r.Tool, nil
	}
	if !strings.Contains(r.Tool, "__") && len(r.Tool) != core.MaxToolName { // a shortened name may have lost the separator
		return "", core.Errorf(core.CodeBadRequest, "server is missing; set it, or write tool as server__tool")
	}
	return r.Tool, nil
}

// refused returns the result of a failed tool call. An app's JSON-RPC errors and invalid results are reported as tool
// failures.
func refused(message string) json.RawMessage {
	return json.RawMessage(`{"content":[{"type":"text","text":` + string(rawjson.Quote(message)) + `}],"isError":true}`)
}

// withResult adds `result` to a CallToolResult and leaves every other member as the app wrote it. `result` is the text
// as JSON if it parses, or else as a string. The raw text is inserted so that numbers keep every digit.
func withResult(raw json.RawMessage) (json.RawMessage, error) {
	members, ok := rawjson.Fields(raw, "content", "isError")
	if !ok {
		return nil, errors.New("the tool result is not an object")
	}
	var content []json.RawMessage
	var set []rawjson.Member
	if err := json.Unmarshal(members["content"], &content); err != nil || content == nil {
		set = append(set, rawjson.Member{Name: "content", Value: json.RawMessage("[]")})
	}
	if string(members["isError"]) != "true" {
		set = append(set, rawjson.Member{Name: "isError", Value: json.RawMessage("false")})
	}
	var texts []string
	for _, part := range content {
		var block struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		if json.Unmarshal(part, &block) == nil && block.Type == "text" {
			texts = append(texts, block.Text)
		}
	}
	text := strings.Join(texts, "\n")
	result := json.RawMessage(text)
	if !json.Valid(result) {
		result = rawjson.Quote(text)
	}
	return rawjson.Set(raw, append(set, rawjson.Member{Name: "result", Value: result})...)
}

// toolEntry is a tool under its full name, with the app that it belongs to. Definition is the tool as MCP clients see
// it.
type toolEntry struct {
	Name       string          `json:"name"`
	Server     string          `json:"server"`
	Tool       string          `json:"tool"`
	Definition json.RawMessage `json:"definition"`
}

// ListTools handles GET /v1/tools, the tools that the caller can see. The parameter server selects the tools of one
// app. Every word of search must occur in the name or the definition.
func (h *Handlers) ListTools(c *fiber.Ctx, caller core.Caller) (any, error) {
	server, words := c.Query("server"), strings.Fields(strings.ToLower(c.Query("search")))
	shown := []toolEntry{}
	for _, t := range h.Tools.List(caller) {
		if (server == "" || t.Tool.Server == server) && containsAll(strings.ToLower(t.Name+" "+string(t.Raw)), words) {
			shown = append(shown, toolEntry{Name: t.Name, Server: t.Tool.Server, Tool: t.BareName(), Definition: t.Raw})
		}
	}
	return fiber.Map{"tools": shown}, nil
}

func containsAll(text string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}
