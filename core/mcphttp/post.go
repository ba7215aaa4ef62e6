package mcphttp

import (
	"context"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/mcphttp/sse"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/webguard"
)

// post handles one message or, in revisions before 2025-06-18, a batch.
func (e *Endpoint) post(c *fiber.Ctx, caller core.Caller, body []byte) error {
	if f := checkMedia(c); f != nil {
		return f.send(c)
	}
	if namesStateless(c) {
		return e.postStateless(c, caller, body)
	}
	id, ok := rawHeader(c, headerSession)
	if !ok || id != nil && len(id) == 0 {
		return badRequest(codeServer, "Mcp-Session-Id is empty or appears more than once").send(c)
	}
	if id == nil {
		return e.postWithoutSession(c, caller, body)
	}
	s, f := e.session(c.UserContext(), id, caller)
	if f == nil {
		f = checkProtocol(c)
	}
	if f != nil {
		return f.send(c)
	}
	messages, batch, err := parseBody(body)
	if err != nil {
		return err.send(c)
	}
	if batch && s.Revision() >= "2025-06-18" {
		return badRequest(rpc.CodeInvalidRequest, "this session's protocol revision does not support batches; send one message per request").send(c)
	}
	if !batch && messages[0].IsCall() && namesRevision(&messages[0]) {
		return e.answerStateless(c, caller, messages[0])
	}
	return e.deliver(c, s, caller, messages, batch)
}

// postWithoutSession opens a session, answers a stateless request that lacks Mcp-Protocol-Version, or refuses the
// request. A client that tries a newer revision first gets a 400 whose body is not one of that revision's errors. The
// client then falls back to an older revision.
func (e *Endpoint) postWithoutSession(c *fiber.Ctx, caller core.Caller, body []byte) error {
	messages, batch, err := parseBody(body)
	if err != nil {
		return err.send(c)
	}
	if !batch && isStateless(&messages[0]) {
		return e.answerStateless(c, caller, messages[0])
	}
	if batch || messages[0].Method != "initialize" {
		return badRequest(codeServer, "this request needs a session; send initialize first, and then the Mcp-Session-Id that it returns").send(c)
	}
	if f := checkProtocol(c); f != nil {
		return f.send(c)
	}
	return e.initialize(c, caller, messages[0])
}

// deliver passes the messages of a POST to its session and writes the response: 202 if none of them is a request, and
// otherwise the answers to the requests.
func (e *Endpoint) deliver(c *fiber.Ctx, s *session, caller core.Caller, messages []Message, batch bool) error {
	var calls []*call
	for _, m := range messages {
		if !m.IsCall() {
			continue
		}
		k := newCall(m, caller, s)
		if f := e.chooseSurface(c, k); f != nil {
			return f.send(c)
		}
		calls = append(calls, k)
	}
	out := sse.NewResponse(len(calls), batch)
	if f := e.begin(c.UserContext(), s, calls, out); f != nil {
		return f.send(c)
	}
	for _, m := range messages {
		if !m.IsCall() {
			e.receive(s, m)
		}
	}
	if len(calls) == 0 {
		c.Status(fiber.StatusAccepted)
		return nil
	}
	return e.serveCalls(c, calls, out)
}

// begin registers calls with their session and counts them among those that a shutdown waits for.
func (e *Endpoint) begin(ctx context.Context, s *session, calls []*call, out *sse.Response) *fault {
	if f := e.acquireCalls(calls); f != nil {
		return f
	}
	if !e.live.BeginCalls(len(calls)) {
		releaseCalls(calls)
		return shuttingDown()
	}
	for _, k := range calls {
		k.out = out
		k.admit(ctx)
	}
	if err := s.Begin(calls); err != nil {
		e.live.EndCalls(len(calls))
		releaseCalls(calls)
		for _, k := range calls {
			k.cancel()
		}
		return refusedBySession(err, "")
	}
	return nil
}

// receive handles a response or a notification from the client.
func (e *Endpoint) receive(s *session, m Message) {
	if m.IsResponse() {
		s.Answer(m.ID, m.Payload, m.Failed)
		return
	}
	switch m.Method {
	case "notifications/cancelled":
		s.Cancel(m.Param("requestId"))
	case "notifications/progress": // progress on an app's question; the server itself asks none
		s.Progress(rpc.Notification{Method: m.Method, Params: m.Params}, m.Param("progressToken"))
	case "notifications/roots/list_changed":
		e.rootsChanged(s)
	}
}

// rootsChanged notifies, in the background, the apps that asked this client for its roots.
func (e *Endpoint) rootsChanged(s *session) {
	e.running.Go(func() {
		ctx, cancel := context.WithTimeout(e.root, gateTimeout)
		defer cancel()
		s.Tools.RootsChanged(ctx)
	})
}

// usualAccept is the Accept header that nearly every client sends.
const usualAccept = "application/json, text/event-stream"

// checkMedia checks the media types of a POST against the rules of Streamable HTTP.
func checkMedia(c *fiber.Ctx) *fault {
	h := &c.Request().Header
	if !webguard.JSON(h) {
		return &fault{status: fiber.StatusUnsupportedMediaType, code: codeServer, message: "Content-Type must be application/json, in UTF-8"}
	}
	if webguard.Encoded(h) {
		return &fault{status: fiber.StatusUnsupportedMediaType, code: codeServer, message: "Content-Encoding is not supported here"}
	}
	if string(h.Peek(fiber.HeaderAccept)) != usualAccept && (!webguard.Accepts(h, "application/json") || !webguard.Accepts(h, "text/event-stream")) {
		return &fault{status: fiber.StatusNotAcceptable, code: codeServer, message: "Accept must allow both application/json and text/event-stream"}
	}
	return nil
}

// checkProtocol refuses a revision that this endpoint does not support in sessions.
func checkProtocol(c *fiber.Ctx) *fault {
	version, ok := rawHeader(c, headerProtocol)
	if version == nil || ok && hasSessions(string(version)) {
		return nil
	}
	return badRequest(codeServer, "Mcp-Protocol-Version is not a supported revision; supported: "+strings.Join(revisions(), ", "))
}
