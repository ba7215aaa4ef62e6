package httpapi

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/body"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tools"
)

type toolRequest struct {
	Server    string          `json:"server"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

// callTool is POST /v1/tools/call. The body is checked here, everything else by package tools. A client
// that disconnects cancels the call.
func (s *Server) callTool(c *fiber.Ctx, caller core.Caller) error {
	r, err := body.Read[toolRequest](c.Context())
	if err != nil {
		return err
	}
	name, err := r.name()
	if err != nil {
		return err
	}
	if len(r.Arguments) > 0 && r.Arguments[0] != '{' && string(r.Arguments) != "null" {
		return core.Errorf(core.CodeBadRequest, "arguments must be an object")
	}
	if s.options.AccessLog {
		c.Context().SetUserValue(toolKey{}, name)
	}
	release, err := s.acquireCall(caller)
	if err != nil {
		return err
	}
	defer release()
	ctx, done := cancelOnDisconnect(c)
	defer done()
	result, err := s.tools.Call(ctx, caller, tools.Call{Name: name, Arguments: r.Arguments, CheckInput: true})
	if refusal, ok := errors.AsType[*rpc.Error](err); ok {
		result, err = refused(refusal.Message), nil
	}
	if err != nil {
		return err
	}
	shaped, err := withResult(result)
	if err != nil {
		s.log.Warn("an app returned an invalid tool result", "tool", name, "workspace", caller.Workspace.ID, "error", err)
		shaped, err = withResult(refused("the app returned an invalid tool result"))
	}
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	return c.Send(shaped) // c.JSON would rewrite it
}

// name is the tool's full name: tool is bare beside a server, and full without one.
func (r toolRequest) name() (string, error) {
	if r.Tool == "" {
		return "", core.Errorf(core.CodeBadRequest, "tool is missing; name the tool to call")
	}
	if r.Server != "" {
		return r.Server + "__" + r.Tool, nil
	}
	if !strings.Contains(r.Tool, "__") {
		return "", core.Errorf(core.CodeBadRequest, "server is missing; name it, or give tool as server__tool")
	}
	return r.Tool, nil
}

// refused is the result of a failed tool call. JSON-RPC errors of an app and invalid results are
// reported as failures of the tool.
func refused(message string) json.RawMessage {
	result, _ := json.Marshal(map[string]any{ // strings and a bool always marshal
		"content": []map[string]string{{"type": "text", "text": message}}, "isError": true,
	})
	return result
}

// withResult adds `result` to a CallToolResult and leaves every other member as the app wrote it: the
// text parsed as JSON when it parses, else the text. The raw text is inserted, so that numbers keep
// every digit.
func withResult(raw json.RawMessage) (json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil || members == nil {
		return nil, errors.Join(errors.New("a tool result is not an object"), err)
	}
	var content []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(members["content"], &content); err != nil || content == nil {
		members["content"] = json.RawMessage("[]")
	}
	if string(members["isError"]) != "true" {
		members["isError"] = json.RawMessage("false")
	}
	var texts []string
	for _, block := range content {
		if block.Type == "text" {
			texts = append(texts, block.Text)
		}
	}
	text := strings.Join(texts, "\n")
	members["result"] = json.RawMessage(text)
	if !json.Valid(members["result"]) {
		members["result"], _ = json.Marshal(text) // a string always marshals
	}
	return join(members), nil
}

// join writes members as an object in the order of their names. Their values stay as they are.
func join(members map[string]json.RawMessage) json.RawMessage {
	out := []byte{'{'}
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			out = append(out, ',')
		}
		quoted, _ := json.Marshal(name)
		out = append(append(append(out, quoted...), ':'), members[name]...)
	}
	return append(out, '}')
}
