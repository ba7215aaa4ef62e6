package mcphttp

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/utils"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/limits"
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
	Message
	number       int64         // unique in its session, from 1
	out          *sse.Response // receives the call's answer, preceded by any messages about the call
	cancel       func()        // ends its context
	caller       core.Caller
	session      *session        // nil without one
	surface      tools.Surface   // the surface that the client chose
	shortResults bool            // the client wants results that are shortened to fit its limit
	context      context.Context //nolint:containedctx // ends with the call, when its client cancels it, and when the server stops
	span         tracing.Span

	release func() // releases its place in the user's share; nil if it holds none
	ended   func() // called when the call has been answered; may be nil
	body    func() // called when the call ends; the last call of a POST releases the memory counted for its body; nil for none

	began  time.Time
	failed bool // the result reports a tool failure
	status int  // the HTTP status of a response without a session; set once the call has its answer
}

func newCall(m Message, caller core.Caller, s *session) *call {
	k := &call{Message: m, caller: caller, session: s, status: fiber.StatusOK, began: time.Now()}
	k.ID = bytes.Clone(m.ID) // the body may be released before the ID is used
	return k
}

// admit gives an accepted call its context. The parent, which lives as long as the endpoint, refers to that context
// until the call is cancelled. A refused call must therefore not get a context.
func (k *call) admit(ctx context.Context) { k.context, k.cancel = context.WithCancel(ctx) }

// serveCalls runs the calls of one POST and writes the response once its form is known. Each call runs on its own
// goroutine. A single call that is answered immediately runs on the current goroutine.
func (e *Endpoint) serveCalls(c *fiber.Ctx, calls []*call, out *sse.Response) error {
	e.noteTool(c, calls)
	keepBody(webguard.TakeBody(c.Context()), calls)
	k := calls[0]
	if len(calls) == 1 && k.isAnsweredAtOnce() {
		e.run(k)
	} else {
		for _, k := range calls {
			e.workers.start(e.root, k)
		}
	}
	c.Response().Header.SetCanonical(utils.UnsafeBytes(fiber.HeaderCacheControl), utils.UnsafeBytes("no-cache, no-transform")) // both are copied
	if !e.await(k, c.Context().Conn()) {
		defer out.Release() // the HTTP server counts the whole response
		return sendJSON(c, k.status, out.JSON())
	}
	c.Set(fiber.HeaderContentType, "text/event-stream")
	c.Set("X-Accel-Buffering", "no")    // a buffering proxy would hold back progress notifications
	if !c.Request().Header.IsHTTP11() { // HTTP/1.0 has no chunks, so the whole stream is sent at its end
		defer out.Release()
		return c.Status(fiber.StatusOK).Send(out.Rest())
	}
	c.Context().SetBodyStream(sse.NewBody(&out.Queue, c.Context().Conn()), -1)
	return nil
}

// isAnsweredAtOnce reports whether a call sends nothing before its answer and does not wait for an app. Starting
// another goroutine would cost more than such a call.
func (k *call) isAnsweredAtOnce() bool {
	switch k.Method {
	case "ping", "server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list":
		return true
	}
	return false
}

// keepBody lets the calls of a POST keep its body. Each call holds a part of the body, and may last much longer than
// the response. The call that ends last releases the body's memory.
func keepBody(release func(), calls []*call) {
	if release == nil {
		return
	}
	left := new(atomic.Int64)
	left.Store(int64(len(calls)))
	for _, k := range calls {
		k.body = func() {
			if left.Add(-1) == 0 {
				release()
			}
		}
	}
}

// watchAfter is how long a client waits for its answer before its connection is watched. Most calls end sooner, and
// watching takes a goroutine.
const watchAfter = 20 * time.Millisecond

// newTimer returns a timer for Endpoint.timers.
func newTimer() any { return time.NewTimer(time.Hour) }

// await waits until the form of the response is known, and reports whether it is a stream. It is a stream if something
// is sent before the last answer, or if the calls are silent for sse.StreamAfter. Without a session, a client that
// disconnects cancels its call. With a session, the client may come back for the answer.
func (e *Endpoint) await(k *call, conn net.Conn) (streamed bool) {
	patience := sse.StreamAfter
	if k.session == nil {
		patience = watchAfter
	}
	slow := e.timers.Get().(*time.Timer) //nolint:forcetypeassert // the pool has nothing else
	slow.Reset(patience)
	defer func() {
		slow.Stop()
		e.timers.Put(slow)
	}()
	var left <-chan struct{}
	for {
		if known, streamed := k.out.Form(); known {
			return streamed
		}
		select {
		case <-k.out.Wake: // the last answer, or the first event
		case <-left:
			k.cancel()
			left = nil
		case <-slow.C:
			if patience == sse.StreamAfter {
				k.out.BeginStream()
				continue
			}
			peer := stream.WatchPeer(conn, nil)
			defer peer.Stop()
			left, patience = peer.Gone(), sse.StreamAfter
			slow.Reset(sse.StreamAfter - watchAfter)
		}
	}
}

// run makes a call and answers it, unless it was already answered when its session ended. It also traces and measures
// the call.
func (e *Endpoint) run(k *call) {
	defer releaseCalls([]*call{k})
	if k.body != nil {
		defer k.body()
	}
	if k.ended != nil {
		defer k.ended()
	}
	k.startSpan()
	result, err := e.handle(k)
	if err == nil && k.session == nil {
		result, err = e.complete(k, result)
	}
	k.cancel()
	var text []byte
	var code int64
	if err != nil {
		failure := errorOf(err)
		k.span.EndMCPError(&rpc.Error{Code: failure.Code})
		code = int64(failure.Code)
		if k.session == nil {
			k.status = statusOf(failure.Code)
		}
		text = errorBody(k.ID, failure)
	} else {
		k.span.EndMCPResult(k.failed)
		text = rpc.Result(k.ID, result...)
	}
	e.measure(k, code)
	releaseCalls([]*call{k}) // before the client can read the answer and make its next call
	if k.session != nil && !k.session.Finish(k) {
		return
	}
	k.out.Answer(e.hold(k, text))
	e.live.EndCalls(1)
}

// countedAnswer is the minimum size in bytes of an answer that is counted. A batch has up to maxCalls answers.
const countedAnswer = 4 << 10

// hold counts an answer against its caller's share of memory until its client has read it. If too much of what was sent
// to the caller is still unread, it returns an error to send instead.
func (e *Endpoint) hold(k *call, text []byte) []byte {
	if len(text) < countedAnswer {
		return text
	}
	release, err := e.o.Limits.HoldResponse(k.caller.User.ID, len(text))
	if err != nil {
		f := rateLimited(err)
		if k.session == nil {
			k.status = f.status
		}
		return errorBody(k.ID, &rpc.Error{Code: f.code, Message: f.message, Data: f.data})
	}
	k.out.Hold(release)
	return text
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
	k.out.Notify(n.Encode())
}

// noteTool records the tool of the first call for the access log. For system__call_tool, it records the tool that
// system__call_tool calls.
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
	r := tracing.MCP{Method: clip(k.Method), Target: target, ID: scalar(k.ID), Transport: tracing.TCP, Workspace: k.caller.Workspace.ID}
	if k.session != nil {
		r.Session, r.Revision = k.session.ID, k.session.Revision()
	} else {
		r.Revision = statelessRevision
	}
	k.context, k.span = tracing.StartMCPServer(k.context, r, from)
}

// acquireCalls counts the requests to apps in a POST against their user's share (limits.calls and, for tool calls,
// limits.callsPerSecond), which also covers calls through the HTTP API. If one of the requests exceeds the share, none
// is made.
func (e *Endpoint) acquireCalls(calls []*call) *fault {
	for _, k := range calls {
		var err error
		switch k.Method {
		case "tools/call":
			err = e.o.Limits.AllowCall(k.caller.User.ID)
		case "prompts/get", "resources/read", "completion/complete", "resources/subscribe", "skills/list", "skills/get", "tasks/get", "tasks/update":
		default:
			continue
		}
		if err == nil {
			k.release, err = e.o.Limits.Acquire(limits.Calls, k.caller.User.ID)
		}
		if err != nil {
			releaseCalls(calls)
			return rateLimited(err).of(k.ID)
		}
	}
	return nil
}

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
		f.data = encode(map[string]any{"error": known.Code})
	}
	return f
}

// maxIdle is the maximum number of goroutines that wait for calls.
const maxIdle = 64

// workers runs calls on reusable goroutines. The stack of a new goroutine is smaller than a call needs, and growing it
// costs more than a tenth of the CPU time of the whole call (BenchmarkWorkers).
type workers struct {
	run   func(*call)
	calls chan *call    // received by idle goroutines
	idle  chan struct{} // holds a token for each idle goroutine
}

func newWorkers(run func(*call)) workers {
	return workers{run: run, calls: make(chan *call), idle: make(chan struct{}, maxIdle)}
}

// start runs a call on an idle or a new goroutine. The goroutines stop when ctx ends.
func (w workers) start(ctx context.Context, k *call) {
	select {
	case w.calls <- k:
	default:
		go w.work(ctx, k)
	}
}

func (w workers) work(ctx context.Context, k *call) {
	for {
		w.run(k)
		select {
		case w.idle <- struct{}{}:
		default:
			return // enough goroutines are waiting
		}
		select {
		case k = <-w.calls:
			<-w.idle
		case <-ctx.Done():
			return
		}
	}
}
