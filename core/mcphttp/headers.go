package mcphttp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
)

// The headers by which intermediaries route requests of the revision without sessions. They say
// again what the body says; a request whose two halves differ is refused (SEP-2243).
const (
	headerMethod = "Mcp-Method"
	headerName   = "Mcp-Name"
	headerParam  = "Mcp-Param-"
)

// checkHeaders holds the headers of a request against its body.
func (e *Endpoint) checkHeaders(c *fiber.Ctx, caller core.Caller, m message) *fault {
	if method, ok := single(c, headerMethod); !ok || method != m.method {
		return mismatch("the header Mcp-Method must be there once and say the method of the body")
	}
	field := nameField(m.method)
	if field == "" {
		return nil
	}
	var name string
	if json.Unmarshal(orEmpty(m.fields[field]), &name) != nil {
		return nil // the method itself says what is wrong with its params
	}
	value, ok := single(c, headerName)
	decoded, fits := decodeHeader(value)
	if !ok || value == "" || !fits || decoded != name && value != name {
		return mismatch("the header Mcp-Name must be there once and say params." + field + " of the body")
	}
	if m.method == "tools/call" {
		return e.checkParams(c, caller, name, m.fields["arguments"])
	}
	return nil
}

// nameField is the field of params that Mcp-Name repeats, "" for methods without one.
func nameField(method string) string {
	switch method {
	case "tools/call", "prompts/get":
		return "name"
	case "resources/read":
		return "uri"
	}
	return ""
}

// checkParams holds Mcp-Param-* headers against the arguments that the tool's schema marks with
// x-mcp-header.
func (e *Endpoint) checkParams(c *fiber.Ctx, caller core.Caller, name string, arguments json.RawMessage) *fault {
	for _, t := range e.o.Tools.List(caller) {
		if t.Name != name {
			continue
		}
		if !bytes.Contains(t.Tool.Schema, []byte(`"x-mcp-header"`)) {
			return nil
		}
		var schema property
		if json.Unmarshal(t.Tool.Schema, &schema) != nil {
			return nil
		}
		return schema.check(c, arguments, "arguments")
	}
	return nil
}

// property is what is read of a schema.
type property struct {
	Header     any                 `json:"x-mcp-header"`
	Properties map[string]property `json:"properties"`
}

// check compares the value at path with its header, and goes down into its properties.
func (p property) check(c *fiber.Ctx, value json.RawMessage, path string) *fault {
	if name, _ := p.Header.(string); name != "" {
		if !agrees(c, headerParam+name, value) {
			return mismatch("the header " + headerParam + clip(name) + " must say " + path + " of the body, and be absent where that is absent")
		}
	}
	if len(p.Properties) == 0 {
		return nil
	}
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(value, &fields) // what is no object has no fields
	for name, inner := range p.Properties {
		if f := inner.check(c, fields[name], path+"."+name); f != nil {
			return f
		}
	}
	return nil
}

// agrees reports whether a header says a value: a string, a boolean, or an integer.
func agrees(c *fiber.Ctx, header string, value json.RawMessage) bool {
	said, ok := single(c, header)
	present := len(c.Request().Header.PeekAll(header)) > 0
	if len(value) == 0 || string(value) == "null" {
		return !present
	}
	decoded, fits := decodeHeader(said)
	if !ok || !present || !fits {
		return false
	}
	switch value[0] {
	case '"':
		var text string
		return json.Unmarshal(value, &text) == nil && text == decoded
	case 't', 'f':
		return string(value) == decoded
	case '{', '[':
		return false
	}
	return sameInteger(string(value), decoded)
}

// sameInteger compares integers however they are written: 1, 1.0 and 1e0 are one. Those past 2^53 are
// the same only as text.
func sameInteger(a, b string) bool {
	x, err := strconv.ParseFloat(a, 64)
	y, bad := strconv.ParseFloat(b, 64)
	return a == b || err == nil && bad == nil && x == y && x == math.Trunc(x) && math.Abs(x) < 1<<53
}

// decodeHeader takes the wrapping off a value that no header could hold as it is. It is false for a
// wrapping with something else than base64 in it.
func decodeHeader(value string) (string, bool) {
	inner, opened := strings.CutPrefix(value, "=?base64?")
	inner, closed := strings.CutSuffix(inner, "?=")
	if !opened || !closed {
		return value, true
	}
	text, err := base64.StdEncoding.Strict().DecodeString(inner)
	return string(text), err == nil
}
