package mcphttp

import (
	"bytes"
	"encoding/json"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core"
)

// The headers of the Streamable HTTP transport.
const (
	headerSession  = "Mcp-Session-Id"
	headerProtocol = "Mcp-Protocol-Version"
)

// post takes one message, or before 2025-06-18 a batch of them.
func (e *Endpoint) post(c *fiber.Ctx, caller core.Caller, body []byte) error {
	if f := checkMedia(c); f != nil {
		return f.send(c)
	}
	if namesModern(c) {
		return e.postModern(c, caller, body)
	}
	id, ok := rawHeader(c, headerSession)
	if !ok {
		return badRequest(codeServer, "Mcp-Session-Id comes more than once").send(c)
	}
	if len(id) == 0 {
		return e.postWithoutSession(c, caller, body)
	}
	s, f := e.session(id, caller)
	if f == nil {
		f = checkProtocol(c)
	}
	if f != nil {
		return f.send(c)
	}
	messages, batch, f := parse(body)
	if f == nil && batch && s.snapshot().ProtocolVersion >= "2025-06-18" {
		f = badRequest(jsonrpc.CodeInvalidRequest, "this session's protocol revision has no batches; send one message per request")
	}
	if f != nil {
		return f.send(c)
	}
	return e.deliver(c, s, caller, messages, batch)
}

// postWithoutSession opens a session, or refuses. A client that first tries a newer revision gets
// a 400 whose body is not one of that revision's errors, and so falls back.
func (e *Endpoint) postWithoutSession(c *fiber.Ctx, caller core.Caller, body []byte) error {
	messages, batch, f := parse(body)
	if f == nil && !batch && messages[0].isModern() {
		return e.answerModern(c, caller, messages[0])
	}
	if f == nil && (batch || messages[0].method != "initialize") {
		f = badRequest(codeServer, "this request needs a session: send initialize first, then the Mcp-Session-Id it answers with")
	}
	if f == nil {
		f = checkProtocol(c)
	}
	if f != nil {
		return f.send(c)
	}
	return e.initialize(c, caller, messages[0])
}

// checkMedia holds a POST to spec 4.10 rule 2.
func checkMedia(c *fiber.Ctx) *fault {
	if !isJSON(c.Request().Header.ContentType()) {
		return &fault{status: fiber.StatusUnsupportedMediaType, code: codeServer, message: "Content-Type must be application/json"}
	}
	if encoding := c.Get(fiber.HeaderContentEncoding); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return &fault{status: fiber.StatusUnsupportedMediaType, code: codeServer, message: "Content-Encoding is not supported here"}
	}
	if string(c.Request().Header.Peek(fiber.HeaderAccept)) != usualAccept && (!accepts(c, "application/json") || !accepts(c, "text/event-stream")) {
		return &fault{status: fiber.StatusNotAcceptable, code: codeServer, message: "Accept must allow both application/json and text/event-stream"}
	}
	return nil
}

// usualAccept is what nearly every client says.
const usualAccept = "application/json, text/event-stream"

// isJSON reports whether a Content-Type is application/json. Nearly always it says just that.
func isJSON(value []byte) bool {
	if string(value) == fiber.MIMEApplicationJSON {
		return true
	}
	media, _, err := mime.ParseMediaType(string(value))
	return err == nil && media == fiber.MIMEApplicationJSON
}

// accepts reports whether Accept allows a media type, by name or by range.
func accepts(c *fiber.Ctx, media string) bool {
	family := media[:strings.IndexByte(media, '/')+1]
	for _, value := range c.Request().Header.PeekAll(fiber.HeaderAccept) {
		for item := range bytes.SplitSeq(value, []byte{','}) {
			item, _, _ = bytes.Cut(item, []byte{';'})
			item = bytes.TrimSpace(item)
			named, ranged := bytes.CutSuffix(item, []byte{'*'})
			switch {
			case bytes.EqualFold(item, []byte(media)), ranged && bytes.EqualFold(named, []byte(family)), string(item) == "*/*":
				return true
			}
		}
	}
	return false
}

// checkProtocol refuses a revision this endpoint does not speak with sessions.
func checkProtocol(c *fiber.Ctx) *fault {
	version, ok := rawHeader(c, headerProtocol)
	if len(version) == 0 || ok && slices.ContainsFunc(revisions(), func(r string) bool { return r == string(version) }) {
		return nil
	}
	return badRequest(codeServer, "Mcp-Protocol-Version names no revision supported here; supported: "+strings.Join(revisions(), ", "))
}

// deliver hands the messages of a POST to its session and writes the answer: 202 when none of them
// is a request (nothing will come back), else what the requests answer.
func (e *Endpoint) deliver(c *fiber.Ctx, s *session, caller core.Caller, messages []message, batch bool) error {
	if !batch && !e.o.SlowPath && messages[0].isDirect() {
		return e.deliverDirect(c, s, caller, messages[0])
	}
	if !batch && messages[0].isCall() && messages[0].namesRevision() {
		return e.answerModern(c, caller, messages[0]) // which has no sessions
	}
	var calls []*call
	for _, m := range messages {
		if m.isCall() {
			calls = append(calls, &call{message: m, caller: caller})
		}
	}
	x := newExchange(len(calls), batch)
	for _, k := range calls {
		k.out = x
	}
	if f := e.begin(s, calls); f != nil {
		return f.send(c)
	}
	unsent := calls
	for _, m := range messages {
		var k *call
		if m.isCall() {
			k, unsent = unsent[0], unsent[1:]
		}
		if msg := s.incoming(m, k); msg != nil && !s.wire.put(msg) && len(calls) == 0 {
			return sessionNotFound(reasonNotFound).send(c)
		}
	}
	if len(calls) == 0 {
		c.Status(fiber.StatusAccepted)
		return nil
	}
	return x.send(c)
}

// begin registers calls with the session and with the count a shutdown waits for.
func (e *Endpoint) begin(s *session, calls []*call) *fault {
	if !e.live.begin(len(calls)) {
		return shuttingDown()
	}
	f := s.begin(calls)
	if f != nil {
		e.live.finish(len(calls))
	}
	return f
}

// incoming turns a message into what the SDK reads, nil when there is nothing to tell it; k is the
// call of a request. A cancellation names the client's id, which the SDK does not know.
func (s *session) incoming(m message, k *call) jsonrpc.Message {
	if m.isResponse() {
		s.answered(m)
		return nil
	}
	req := &jsonrpc.Request{Method: m.method, Params: m.params}
	switch {
	case k != nil:
		req.ID = number(k.number)
		req.Extra = &mcp.RequestExtra{Header: http.Header{key: {keyOf(k.number)}}}
	case m.method == "notifications/progress": // the server asks apps' questions only
		s.progressed(m)
		return nil
	case m.method == "notifications/cancelled":
		n, ok := s.inFlight(m.fields["requestId"])
		if !ok || s.cancelDirect(n) {
			return nil
		}
		req.Params = json.RawMessage(`{"requestId":` + keyOf(n) + `}`)
	}
	return req
}
