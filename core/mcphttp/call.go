package mcphttp

import (
	"bytes"
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/utils"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/mcphttp/lazycontext"
	"github.com/ropewalk/ropewalk/core/mcphttp/message"
	"github.com/ropewalk/ropewalk/core/mcphttp/session"
	"github.com/ropewalk/ropewalk/core/mcphttp/sse"
	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/requestinfo"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/stream"
	"github.com/ropewalk/ropewalk/core/tools"
	"github.com/ropewalk/ropewalk/core/tracing"
)

// call is one request in flight: of a session, or without one (2026-07-28). Its caller is the one of its
// own HTTP request.
type call struct {
	session.Call
	message.Message
	caller  core.Caller
	session *session.Session    // nil without one
	context lazycontext.Context // ends with the call, when its client cancels it, and when the server ends
	span    tracing.Span

	release func() // gives back its place in the share of its user; nil when there is none

	began  time.Time
	failed bool // the result says that a tool failed
	status int  // the HTTP status of a response without a session, once it is answered
}

func (e *Endpoint) newCall(ctx context.Context, m message.Message, caller core.Caller, s *session.Session) *call {
	k := &call{Message: m, caller: caller, session: s, status: fiber.StatusOK, began: time.Now()}
	if len(m.Params) > keptParams {
		k.Message.ID = bytes.Clone(m.ID)
	}
	k.Call.ID = k.Message.ID
	k.context.Init(ctx, 0)
	k.Cancel = k.context.Cancel
	return k
}

// keptParams is the size of params that a call keeps when they were passed on, bytes.
const keptParams = 16 << 10

// serveCalls runs the calls of one POST and writes the response.
func (e *Endpoint) serveCalls(c *fiber.Ctx, calls []*call, out *sse.Response) error {
	noteTool(c, calls)
	if len(calls) > 1 {
		for _, k := range calls {
			go func() { e.finish(k, e.start(k)) }()
		}
		return e.send(c, calls[0], out)
	}
	k := calls[0]
	p := e.start(k)
	if p.done || p.sent != nil && e.answersSoon(p.sent, out) {
		e.finish(k, p)
		return e.send(c, k, out)
	}
	go e.finish(k, p)
	if k.session == nil { // the client of a session may come back for the answer
		peer := stream.WatchPeer(c.Context().Conn(), k.Cancel)
		out.Ready()
		peer.Stop()
	}
	return e.send(c, k, out)
}

// answersSoon waits for the answer of a call that was sent. It returns false when the response may have
// to begin before: because the call is slow, was cancelled, or has sent something else. Such a call is handed to a
// goroutine of its own, so that the response can begin as a stream and a client that leaves is noticed.
func (e *Endpoint) answersSoon(sent tools.Pending, out *sse.Response) bool {
	e.slow.Add(out)
	defer e.slow.Remove(out)
	<-out.Wake
	return sent.Answered()
}

// send writes the response once its form is known: with a Content-Length, or as a stream of events.
func (e *Endpoint) send(c *fiber.Ctx, k *call, out *sse.Response) error {
	c.Response().Header.SetCanonical(utils.UnsafeBytes(fiber.HeaderCacheControl), utils.UnsafeBytes("no-cache, no-transform")) // both are copied
	if !out.Ready() {
		return sendJSON(c, k.status, out.JSON())
	}
	c.Set(fiber.HeaderContentType, "text/event-stream")
	c.Set("X-Accel-Buffering", "no")    // proxies that buffer would hold progress back
	if !c.Request().Header.IsHTTP11() { // no chunks: the whole stream is sent at its end
		return c.Status(fiber.StatusOK).Send(out.Rest())
	}
	c.Context().SetBodyStream(sse.NewBody(out.Queue, c.Context().Conn()), -1)
	return nil
}

// finish ends a call and answers it, unless the end of its session has done so.
func (e *Endpoint) finish(k *call, p pending) {
	defer releaseCalls([]*call{k})
	result, err := e.wait(k, p)
	if err == nil && k.session == nil {
		result, err = e.complete(k, result)
	}
	k.Cancel()
	var text []byte
	var code int64
	if err != nil {
		failure := errorOf(err)
		k.span.EndMCPError(&rpc.Error{Code: int(failure.Code)})
		code = failure.Code
		if k.session == nil {
			k.status = statusOf(failure.Code)
		}
		text = errorBody(k.Call.ID, failure)
	} else {
		k.span.EndMCPResult(k.failed)
		text = rpc.Result(k.Call.ID, result...)
	}
	e.measure(k, code)
	if k.session != nil && !k.session.Finish(&k.Call) {
		return
	}
	k.Out.Answer(text)
	e.live.EndCalls(1)
}

// measure records a call that has its answer.
func (e *Endpoint) measure(k *call, code int64) {
	if e.o.Metrics == nil {
		return
	}
	revision := statelessRevision
	if k.session != nil {
		revision = k.session.Revision()
	}
	e.o.Metrics.ServerOperation(k.Method, revision, code, k.failed, time.Since(k.began))
}

// wait waits for the result of a call. A panic fails the call alone.
func (e *Endpoint) wait(k *call, p pending) (result [][]byte, err error) {
	defer e.recoverCall(k, func(internal error) { result, err = nil, internal })
	return p.wait()
}

// recoverCall is deferred: a panic fails the call alone.
func (e *Endpoint) recoverCall(k *call, fail func(error)) {
	if p := recover(); p != nil {
		e.log.Error("call panicked", "method", k.Method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		fail(internalError())
	}
}

// notify sends what an app says about a call on the response to that call's own POST, in the app's order.
func (k *call) notify(n rpc.Notification) {
	if n.Method == "notifications/progress" && !k.Progress {
		return // the client did not ask
	}
	k.Out.Notify(n.Encode())
}

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
