package mcphttp

import (
	"encoding/json"
	"slices"

	"github.com/gofiber/fiber/v2"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps"
)

// modernRevision is the protocol revision without sessions. What a session would know travels with
// every request, in its _meta.
const modernRevision = "2026-07-28"

// metaLogLevel is what log messages a request wants to see, from that level on.
const metaLogLevel = "io.modelcontextprotocol/logLevel"

// supported are all revisions this endpoint speaks, newest first.
func supported() []string { return append([]string{modernRevision}, revisions()...) }

// namesModern reports whether the header names the revision without sessions, or one that is newer
// than all: that one is refused in the words of the newest.
func namesModern(c *fiber.Ctx) bool {
	version, _ := rawHeader(c, headerProtocol)
	return string(version) >= modernRevision
}

// isModern reports whether a request that came without the header is of the revision without
// sessions all the same: clients find out what they may speak that way.
func (m message) isModern() bool {
	return m.method == "server/discover" || m.namesRevision()
}

// namesRevision reports whether a request says which revision it is of, as only those do that have no
// session.
func (m message) namesRevision() bool {
	meta, _ := object(m.fields["_meta"])
	return meta[mcp.MetaKeyProtocolVersion] != nil
}

// methodGone answers GET and DELETE: without sessions there is nothing to listen to or to end.
func methodGone(c *fiber.Ctx) error {
	c.Set(fiber.HeaderAllow, fiber.MethodPost)
	return c.Status(fiber.StatusMethodNotAllowed).SendString("Method Not Allowed")
}

// postModern takes one message of the revision without sessions.
func (e *Endpoint) postModern(c *fiber.Ctx, caller core.Caller, body []byte) error {
	messages, batch, f := parse(body)
	if f == nil && batch {
		f = badRequest(jsonrpc.CodeInvalidRequest, "this protocol revision has no batches; send one message per request")
	}
	if f != nil {
		return f.send(c)
	}
	return e.answerModern(c, caller, messages[0])
}

// answerModern answers a request. Notifications have nothing to say here, where closing the
// connection cancels a call, and are taken; responses answer nothing.
func (e *Endpoint) answerModern(c *fiber.Ctx, caller core.Caller, m message) error {
	if m.isResponse() {
		return badRequest(jsonrpc.CodeInvalidRequest, "this protocol revision asks its clients nothing that a response could answer").of(m.id).send(c)
	}
	f := e.checkModern(c, caller, m)
	if f != nil {
		return f.of(m.id).send(c)
	}
	if !m.isCall() {
		c.Status(fiber.StatusAccepted)
		return nil
	}
	if m.method == "subscriptions/listen" {
		return e.listen(c, caller, m)
	}
	return e.run(c, &call{message: m, caller: caller, modern: true})
}

// checkModern holds a message to what its _meta and its headers must say (MCP 2026-07-28, basic). Of a
// notification only the headers are asked for.
func (e *Endpoint) checkModern(c *fiber.Ctx, caller core.Caller, m message) *fault {
	version, ok := single(c, headerProtocol)
	if !ok || version == "" {
		return mismatch("the header MCP-Protocol-Version must be there once")
	}
	if f := checkVersion(version, m); f != nil {
		return f
	}
	if method, ok := single(c, headerMethod); !ok || method != m.method {
		return mismatch("the header Mcp-Method must be there once and say the method of the body")
	}
	if !m.isCall() {
		return nil
	}
	return e.checkHeaders(c, caller, m)
}

// checkVersion holds the revision that the header names to the one of _meta, and checks what _meta
// says besides.
func checkVersion(header string, m message) *fault {
	if !m.isCall() {
		return unsupported(header)
	}
	meta, ok := object(orEmpty(m.fields["_meta"]), mcp.MetaKeyProtocolVersion, mcp.MetaKeyClientCapabilities, mcp.MetaKeyClientInfo, metaLogLevel)
	var version, level string
	if !ok || json.Unmarshal(orEmpty(meta[mcp.MetaKeyProtocolVersion]), &version) != nil {
		return badRequest(jsonrpc.CodeInvalidParams, "params._meta must say "+mcp.MetaKeyProtocolVersion+", a string")
	}
	if version != header {
		return mismatch("the header MCP-Protocol-Version does not say what params._meta says")
	}
	if f := unsupported(version); f != nil {
		return f
	}
	if can := meta[mcp.MetaKeyClientCapabilities]; len(can) == 0 || can[0] != '{' {
		return badRequest(jsonrpc.CodeInvalidParams, "params._meta must say "+mcp.MetaKeyClientCapabilities+", an object")
	}
	if said := meta[metaLogLevel]; said != nil && (json.Unmarshal(said, &level) != nil || !slices.Contains(apps.LogLevels(), level)) {
		return badRequest(jsonrpc.CodeInvalidParams, metaLogLevel+" must be one of the log levels of MCP")
	}
	var client struct{ Name, Version *string }
	if said := meta[mcp.MetaKeyClientInfo]; said != nil && (said[0] != '{' || json.Unmarshal(said, &client) != nil) {
		return badRequest(jsonrpc.CodeInvalidParams, mcp.MetaKeyClientInfo+" must be an object with a name and a version")
	}
	return nil
}

// unsupported refuses a revision that is not the one without sessions.
func unsupported(version string) *fault {
	if version == modernRevision {
		return nil
	}
	f := badRequest(mcp.CodeUnsupportedProtocolVersion, "this protocol revision is not supported")
	f.data = mcp.UnsupportedProtocolVersionData{Supported: supported(), Requested: version}
	return f
}

// mismatch refuses headers that do not say what the body says.
func mismatch(message string) *fault { return badRequest(mcp.CodeHeaderMismatch, message) }

// orEmpty is an object or a value that no string is read from, for what is absent.
func orEmpty(text json.RawMessage) json.RawMessage {
	if text == nil {
		return json.RawMessage("{}")
	}
	return text
}
