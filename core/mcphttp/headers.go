package mcphttp

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/mcphttp/message"
	"github.com/ropewalk/ropewalk/core/rawjson"
)

// The headers by which intermediaries route requests of the revision without sessions. They say
// again what the body says; a request whose two halves differ is refused (SEP-2243).
const (
	headerMethod = "Mcp-Method"
	headerName   = "Mcp-Name"
	headerParam  = "Mcp-Param-"
)

// checkHeaders holds the headers that name what a request is about against its body.
func (e *Endpoint) checkHeaders(c *fiber.Ctx, caller core.Caller, m *message.Message) *fault {
	field := nameField(m.Method)
	if field == "" {
		return nil
	}
	var name string
	if json.Unmarshal(message.OrEmpty(m.Param(field)), &name) != nil {
		return nil // the method itself says what is wrong with its params
	}
	value, ok := single(c, headerName)
	decoded, fits := decodeHeader(value)
	if !ok || value == "" || !fits || decoded != name {
		return mismatch("the header Mcp-Name must be there once and say params." + field + " of the body")
	}
	if m.Method != "tools/call" {
		return nil
	}
	for _, mirror := range e.o.Tools.Mirrors(caller, name) {
		if !agrees(c, headerParam+mirror.Header, mirror.Path, m.Param("arguments")) {
			return mismatch("the header " + headerParam + clip(mirror.Header) + " must say arguments." + clip(strings.Join(mirror.Path, ".")) +
				" of the body, and be absent where that is absent or null")
		}
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

// agrees reports whether a header says the argument at path: a string, a boolean, or an integer that
// every reader takes for the same.
func agrees(c *fiber.Ctx, header string, path []string, arguments json.RawMessage) bool {
	value, clear := argument(arguments, path)
	said, once := single(c, header)
	present := len(c.Request().Header.PeekAll(header)) > 0
	if !clear {
		return false
	}
	if value == nil || string(value) == "null" {
		return !present
	}
	decoded, fits := decodeHeader(said)
	if !once || !present || !fits || !plainASCII(said) {
		return false
	}
	switch value[0] {
	case '"':
		return rawjson.Text(value) == decoded
	case 't', 'f':
		return string(value) == decoded
	case '{', '[':
		return false
	}
	return sameInteger(string(value), decoded)
}

// argument is the value that a path leads to, nil for none. It is false where a key comes twice: who
// reads the other one would see another value.
func argument(value json.RawMessage, path []string) (json.RawMessage, bool) {
	for _, name := range path {
		if len(value) == 0 || value[0] != '{' {
			return nil, true
		}
		fields, ok := rawjson.Fields(value)
		if !ok {
			return nil, false
		}
		value = fields[name]
	}
	return value, true
}

// plainASCII reports whether a header holds nothing but what the revision lets a value be as it is.
func plainASCII(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return r != '\t' && (r < ' ' || r > '~') })
}

// sameInteger compares integers however they are written: 1, 1.0 and 1e0 are one. Those past 2^53
// are not the same to every reader, and no header may say them.
func sameInteger(a, b string) bool {
	x, err := strconv.ParseFloat(a, 64)
	y, bad := strconv.ParseFloat(b, 64)
	return err == nil && bad == nil && x == y && x == math.Trunc(x) && math.Abs(x) < 1<<53
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
