package mcphttp

import (
	"bytes"
	"context"
	"errors"
	"net"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/utils"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/limits"
	"github.com/ropewalk/ropewalk/core/mcphttp/session"
	"github.com/ropewalk/ropewalk/core/mcphttp/sse"
	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/stream"
	"github.com/ropewalk/ropewalk/core/tools"
	"github.com/ropewalk/ropewalk/core/tracing"
	"github.com/ropewalk/ropewalk/core/webguard"
)

// call is one request in flight, with a session or without one (revision 2026-07-28). Its caller is the caller of its
// own HTTP request, not the owner of the session.
type call struct {
	session.Call
	Message
	caller  core.Caller
	session *session.Session // nil without one
	surface tools.Surface    // the surface that the client chose
	readsOn bool             // the client asks for results that fit its limit
	context context.Context  //nolint:containedctx // ends with the call, when its client cancels it, and when the server ends
	span    tracing.Span

	release func() // releases its place in the user's share; nil when it holds none

	began  time.Time
	failed bool // the result reports a tool failure
	status int  // the HTTP status of a response without a session; set once the call has its answer
}

func (e *Endpoint) newCall(ctx context.Context, m Message, caller core.Caller, s *session.Session) *call {
	k := &call{Message: m, caller: caller, session: s, status: fiber.StatusOK, began: time.Now()}
	k.Message.ID = bytes.Clone(m.ID) // the body may be released before the ID is used
	k.Call.ID = k.Message.ID
	k.context, k.Cancel = context.WithCancel(ctx)
	return k
}

// serveCalls runs the calls of one POST, each on its own goroutine, and writes the response once its form is known.
func (e *Endpoint) serveCalls(c *fiber.Ctx, calls []*call, out *sse.Response) error {
	e.noteTool(c, calls)
	for _, k := range calls {
		e.workers.start(e.root, k, e.run)
	}
	k := calls[0]
	c.Response().Header.SetCanonical(utils.UnsafeBytes(fiber.HeaderCacheControl), utils.UnsafeBytes("no-cache, no-transform")) // both are copied
	if !k.await(c.Context().Conn()) {
		return sendJSON(c, k.status, out.JSON())
	}
	c.Set(fiber.HeaderContentType, "text/event-stream")
	c.Set("X-Accel-Buffering", "no")    // a buffering proxy would hold back progress notifications
	if !c.Request().Header.IsHTTP11() { // HTTP/1.0 has no chunks, so the whole stream is sent at its end
		return c.Status(fiber.StatusOK).Send(out.Rest())
	}
	c.Context().SetBodyStream(sse.NewBody(out.Queue, c.Context().Conn()), -1)
	return nil
}

// watchAfter is how long a client waits for its answer before its connection is watched. Most calls end sooner, and
// watching takes a goroutine.
const watchAfter = 20 * time.Millisecond

// await waits until the form of the response is known, and reports whether it is a stream. It is a stream if something
// is sent before the last answer, or if the calls are silent for sse.StreamAfter. Without a session, a client that
// disconnects cancels its call. With one, the client may come back for the answer.
func (k *call) await(conn net.Conn) (streamed bool) {
	patience := sse.StreamAfter
	if k.session == nil {
		patience = watchAfter
	}
	slow := time.NewTimer(patience)
	defer slow.Stop()
	var left <-chan struct{}
	for {
		if known, streamed := k.Out.Form(); known {
			return streamed
		}
		select {
		case <-k.Out.Wake: // the last answer, or the first event
		case <-left:
			k.Cancel()
			left = nil
		case <-slow.C:
			if patience == sse.StreamAfter {
				k.Out.BeginStream()
				continue
			}
			peer := stream.WatchPeer(conn, nil)
			defer peer.Stop()
			left, patience = peer.Gone(), sse.StreamAfter
			slow.Reset(sse.StreamAfter - watchAfter)
		}
	}
}

// run makes a call and answers it, unless the end of its session already has. It also traces and measures the call.
func (e *Endpoint) run(k *call) {
	defer releaseCalls([]*call{k})
	k.startSpan()
	result, err := e.handle(k)
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

// measure records a call that has been answered.
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

// notify sends an app's notification about a call on the response to that call's POST, in the order the app sent them.
func (k *call) notify(n rpc.Notification) {
	if n.Method == "notifications/progress" && !k.Progress {
		return // the client did not ask for progress
	}
	k.Out.Notify(n.Encode())
}

// noteTool records the tool of the first call for the access log: with system__call_tool, the one that it calls.
func (e *Endpoint) noteTool(c *fiber.Ctx, calls []*call) {
	if info := webguard.RequestOf(c.Context()); info != nil && calls[0].Method == "tools/call" {
		info.SetTool(clip(e.o.Tools.Called(tools.Call{Name: rawjson.Text(calls[0].Param("name")), Arguments: calls[0].Param("arguments")})))
	}
}

// startSpan starts the span of a call. A trace context in _meta takes precedence over one in the HTTP headers
// (SEP-414).
func (k *call) startSpan() {
	from := tracing.WireInMeta(k.Param("_meta"))
	if from.Parent == "" && !tracing.Recording(k.context) {
		return
	}
	target := ""
	if k.Method == "tools/call" || k.Method == "prompts/get" {
		target = clip(rawjson.Text(k.Param("name")))
	}
	r := tracing.MCP{Method: clip(k.Method), Target: target, ID: scalar(k.Call.ID), Transport: tracing.TCP, Workspace: k.caller.Workspace.ID}
	if k.session != nil {
		r.Session, r.Revision = k.session.ID, k.session.Revision()
	} else {
		r.Revision = statelessRevision
	}
	k.context, k.span = tracing.StartMCPServer(k.context, r, from)
}

// acquireCalls counts the tool calls of a POST against their user's share (limits.calls and limits.callsPerSecond),
// which calls through the HTTP API share. If one of them exceeds it, none is made.
func (e *Endpoint) acquireCalls(calls []*call) *fault {
	for _, k := range calls {
		if k.Method != "tools/call" {
			continue
		}
		err := e.o.Limits.AllowCall(k.caller.User.ID)
		if err == nil {
			k.release, err = e.o.Limits.Acquire(limits.Calls, k.caller.User.ID)
		}
		if err != nil {
			releaseCalls(calls)
			return rateLimited(err).of(k.Call.ID)
		}
	}
	return nil
}

// releaseCalls releases what acquireCalls acquired.
func releaseCalls(calls []*call) {
	for _, k := range calls {
		if k.release != nil {
			k.release()
			k.release = nil
		}
	}
}

// rateLimited returns the fault for a call that exceeds its user's share: HTTP 429 with Retry-After.
func rateLimited(err error) *fault {
	f := retryLater(fiber.StatusTooManyRequests, err.Error(), 0)
	if known, ok := errors.AsType[*core.Error](err); ok {
		f.message, f.retryAfter = known.Message, known.RetryAfter
		f.data = map[string]any{"error": known.Code}
	}
	return f
}
