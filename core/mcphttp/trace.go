package mcphttp

import (
	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core/mcphttp/message"
	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/requestinfo"
	"github.com/ropewalk/ropewalk/core/tracing"
)

// noteTool notes the tool of the first call for the access log.
func noteTool(c *fiber.Ctx, calls []*call) {
	if info := requestinfo.Of(c.Context()); info != nil && calls[0].Method == "tools/call" {
		info.SetTool(clip(rawjson.Text(calls[0].Param("name"))))
	}
}

// startSpan starts the span of a call. A trace context in _meta comes before that of the HTTP headers
// (SEP-414).
func (k *call) startSpan() {
	from := tracing.WireInMeta(k.Param("_meta"))
	if from.Parent == "" && !tracing.Recording(k.context.Context) {
		return
	}
	target := ""
	if k.Method == "tools/call" || k.Method == "prompts/get" {
		target = clip(rawjson.Text(k.Param("name")))
	}
	r := tracing.MCP{Method: clip(k.Method), Target: target, ID: message.Scalar(k.Call.ID), Transport: tracing.TCP, Workspace: k.caller.Workspace.ID}
	if k.session != nil {
		r.Session, r.Revision = k.session.ID, k.session.Revision()
	} else {
		r.Revision = statelessRevision
	}
	k.context.Context, k.span = tracing.StartMCPServer(k.context.Context, r, from)
}
