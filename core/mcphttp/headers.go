package mcphttp

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/headerparam"
	"github.com/ropewalk/ropewalk/core/tools"
)

// Intermediaries route stateless requests by these headers, which repeat values in the body. A request whose headers
// and body differ is refused (SEP-2243).
const (
	headerMethod = "Mcp-Method"
	headerName   = "Mcp-Name"
)

// checkHeaders checks that the headers that specify a request's target match its body.
func (e *Endpoint) checkHeaders(c *fiber.Ctx, caller core.Caller, m *Message) *fault {
	field := nameField(m.Method)
	if field == "" {
		return nil
	}
	var name string
	if json.Unmarshal(orEmpty(m.Param(field)), &name) != nil {
		return nil // the method itself reports errors in its params
	}
	value, ok := single(c, headerName)
	decoded, fits := headerparam.Decode(value)
	if !ok || value == "" || !fits || decoded != name {
		return mismatch("send the header Mcp-Name exactly once, with the value of params." + field + " in the body")
	}
	if m.Method != "tools/call" {
		return nil
	}
	for _, mirror := range e.o.Tools.Mirrors(caller, tools.From{Stateless: true}, name) {
		if !headerparam.Agrees(headerValues(c, headerparam.Prefix+mirror.Header), mirror, m.Param("arguments")) {
			return mismatch("the header " + headerparam.Prefix + clip(mirror.Header) + " must have the value of arguments." + clip(strings.Join(mirror.Path, ".")) +
				" in the body, and be absent if that is absent or null")
		}
	}
	return nil
}

// nameField returns the field of params that Mcp-Name repeats, or "" for methods without one.
func nameField(method string) string {
	switch method {
	case "tools/call", "prompts/get":
		return "name"
	case "resources/read":
		return "uri"
	case "tasks/get", "tasks/update", "tasks/cancel":
		return "taskId"
	}
	return ""
}

// headerValues returns the values of a header, one per header line.
func headerValues(c *fiber.Ctx, name string) []string {
	lines := c.Request().Header.PeekAll(name)
	values := make([]string, len(lines))
	for i, line := range lines {
		values[i] = string(line)
	}
	return values
}

// The headers of the Streamable HTTP transport.
const (
	headerSession  = "Mcp-Session-Id"
	headerProtocol = "Mcp-Protocol-Version"
)

// statelessRevision is the protocol revision without sessions. Every request carries in its _meta the state that a
// session would otherwise keep.
const statelessRevision = "2026-07-28"

// metaLogLevel is the _meta key for the lowest severity of log messages that a request wants to receive.
const metaLogLevel = "io.modelcontextprotocol/logLevel"

// revisions returns the protocol revisions that have sessions, newest first.
func revisions() []string { return []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"} }

func hasSessions(revision string) bool { return slices.Contains(revisions(), revision) }

// supported returns all revisions that this endpoint supports, newest first.
func supported() []string { return append([]string{statelessRevision}, revisions()...) }
