package mcphttp

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/gofiber/fiber/v2"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps"
	"github.com/ropewalk/ropewalk/core/mcphttp/sse"
	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// namesStateless reports whether the header contains the stateless revision or a newer one. An unknown newer revision
// is refused in the way that the stateless revision prescribes.
func namesStateless(c *fiber.Ctx) bool {
	version, _ := rawHeader(c, headerProtocol)
	return string(version) >= statelessRevision
}

// isStateless reports whether a request is stateless even though it lacks the header. Clients use such requests to
// find out what the server supports.
func isStateless(m *Message) bool {
	return m.Method == "server/discover" || namesRevision(m)
}

// namesRevision reports whether a request has its revision in _meta, which only stateless requests do.
func namesRevision(m *Message) bool {
	meta, _ := rawjson.ListOf(m.Param("_meta"))
	return meta.Get(mcp.MetaKeyProtocolVersion) != nil
}

// methodGone responds to GET and DELETE. As there are no sessions, there is nothing to listen to or to end.
func methodGone(c *fiber.Ctx) error {
	c.Set(fiber.HeaderAllow, fiber.MethodPost)
	return c.Status(fiber.StatusMethodNotAllowed).SendString("Method Not Allowed")
}

// postStateless handles one message of the stateless revision.
func (e *Endpoint) postStateless(c *fiber.Ctx, caller core.Caller, body []byte) error {
	messages, batch, err := parseBody(body)
	if err != nil {
		return err.send(c)
	}
	if batch {
		return badRequest(rpc.CodeInvalidRequest, "this protocol revision does not support batches; send one message per request").send(c)
	}
	return e.answerStateless(c, caller, messages[0])
}

// answerStateless answers a request. It accepts and ignores notifications, because a client cancels a call by closing
// the connection. It refuses responses, because the server sends no requests in this revision.
func (e *Endpoint) answerStateless(c *fiber.Ctx, caller core.Caller, m Message) error {
	if m.IsResponse() {
		return badRequest(rpc.CodeInvalidRequest, "in this protocol revision, the server sends its clients no requests, so it accepts no responses").of(m.ID).send(c)
	}
	f := e.checkStateless(c, caller, &m)
	if f != nil {
		return f.of(m.ID).send(c)
	}
	if !m.IsCall() {
		c.Status(fiber.StatusAccepted)
		return nil
	}
	if m.Method == "subscriptions/listen" {
		return e.listen(c, caller, m)
	}
	k := newCall(m, caller, nil)
	if f := e.chooseSurface(c, k); f != nil {
		return f.send(c)
	}
	if f := e.acquireCalls([]*call{k}); f != nil {
		return f.send(c)
	}
	if !e.live.BeginCalls(1) {
		releaseCalls([]*call{k})
		return shuttingDown().of(m.ID).send(c)
	}
	k.admit(c.UserContext())
	k.out = sse.NewResponse(1, false)
	k.out.Left = k.cancel                                                         // a client that disconnects from its stream cancels the call
	k.ended = e.standing.add(&openStream{caller, k.cancel, func(core.Caller) {}}) // there is no session that could end the call when access is revoked
	e.recheck(caller, c.Context().Time())
	return e.serveCalls(c, []*call{k}, k.out)
}

// checkStateless checks the required _meta and headers of a message (MCP 2026-07-28, basic). For notifications it
// checks only the headers.
func (e *Endpoint) checkStateless(c *fiber.Ctx, caller core.Caller, m *Message) *fault {
	version, ok := single(c, headerProtocol)
	if !ok || version == "" {
		return mismatch("send the header MCP-Protocol-Version exactly once")
	}
	if f := checkVersion(version, m); f != nil {
		return f
	}
	if method, ok := single(c, headerMethod); !ok || method != m.Method {
		return mismatch("send the header Mcp-Method exactly once, with the method in the body")
	}
	if !m.IsCall() {
		return nil
	}
	return e.checkHeaders(c, caller, m)
}

// checkVersion checks that the revisions in the header and in _meta match, and checks the rest of _meta.
func checkVersion(header string, m *Message) *fault {
	if !m.IsCall() {
		return unsupported(header)
	}
	meta, ok := rawjson.Fields(orEmpty(m.Param("_meta")), mcp.MetaKeyProtocolVersion, mcp.MetaKeyClientCapabilities, mcp.MetaKeyClientInfo, metaLogLevel)
	version := rawjson.Text(meta[mcp.MetaKeyProtocolVersion])
	if !ok || version == "" {
		return badRequest(rpc.CodeInvalidParams, "params._meta must have "+mcp.MetaKeyProtocolVersion+", a string")
	}
	if version != header {
		return mismatch("the header MCP-Protocol-Version does not match the one in params._meta")
	}
	if f := unsupported(version); f != nil {
		return f
	}
	if can := meta[mcp.MetaKeyClientCapabilities]; len(can) == 0 || can[0] != '{' {
		return badRequest(rpc.CodeInvalidParams, "params._meta must have "+mcp.MetaKeyClientCapabilities+", an object")
	}
	if level := meta[metaLogLevel]; level != nil && !slices.Contains(apps.LevelNames(), rawjson.Text(level)) {
		return badRequest(rpc.CodeInvalidParams, metaLogLevel+" must be one of the log levels of MCP")
	}
	var client struct{ Name, Version *string }
	if info := meta[mcp.MetaKeyClientInfo]; info != nil && (info[0] != '{' || json.Unmarshal(info, &client) != nil) {
		return badRequest(rpc.CodeInvalidParams, mcp.MetaKeyClientInfo+" must be an object with a name and a version")
	}
	return nil
}

// unsupported returns a fault for any revision other than the stateless one.
func unsupported(version string) *fault {
	if version == statelessRevision {
		return nil
	}
	f := badRequest(mcp.CodeUnsupportedProtocolVersion, "this protocol revision is not supported")
	f.data = encode(mcp.UnsupportedProtocolVersionData{Supported: supported(), Requested: version})
	return f
}

// mismatch returns the fault for headers that do not match the body.
func mismatch(message string) *fault { return badRequest(mcp.CodeHeaderMismatch, message) }

// freshFor is how long a client may cache a list, in milliseconds. Clients that listen are notified of a change
// immediately. The others may not notice it until this time has passed.
const freshFor = "5000"

// complete adds the members that the stateless revision requires to a result. Every result has its type and the
// server's identity; lists also state how long and for whom they are valid. A list is always private to its caller,
// even if the app says otherwise.
func (e *Endpoint) complete(k *call, parts [][]byte) ([][]byte, error) {
	result := slices.Concat(parts...)
	fields, ok := rawjson.Fields(result)
	if !ok {
		return nil, &rpc.Error{Code: codeServer, Message: "the app responded with something other than an object"}
	}
	var members []rawjson.Member
	if fields["resultType"] == nil {
		members = append(members, rawjson.Member{Name: "resultType", Value: json.RawMessage(`"complete"`)})
	}
	switch k.Method {
	case "server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read", "skills/list", "skills/get":
		if string(fields["resultType"]) == `"input_required"` {
			break
		}
		if _, err := strconv.ParseUint(string(fields["ttlMs"]), 10, 53); err != nil { // missing, or not an integer that every client can read
			members = append(members, rawjson.Member{Name: "ttlMs", Value: json.RawMessage(freshFor)})
		}
		members = append(members, rawjson.Member{Name: "cacheScope", Value: json.RawMessage(`"private"`)})
	}
	return onePart(rawjson.Set(result, e.sign(fields["_meta"], members)...))
}

// sign adds a _meta with the server's identity to the members that a result gets (MCP 2026-07-28, basic, per-response
// protocol fields). The client's peer is this server, not the app. A _meta that is not an object is left unchanged.
func (e *Endpoint) sign(meta json.RawMessage, members []rawjson.Member) []rawjson.Member {
	signed, err := rawjson.Set(orEmpty(meta), rawjson.Member{Name: mcp.MetaKeyServerInfo, Value: e.self})
	if err != nil {
		return members
	}
	return append(members, rawjson.Member{Name: "_meta", Value: signed})
}
