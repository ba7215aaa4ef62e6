// Package headerparam handles tool arguments that HTTP requests in MCP 2026-07-28 repeat in headers, so that
// intermediaries can route by them (basic/transports, custom headers from tool parameters).
//
// It finds the arguments that a schema marks with x-mcp-header (FromSchema), builds the headers of a call (Header),
// compares headers with a body (Agrees), and encodes values (Encode, Decode). It does not send or refuse anything:
// link sends the headers, and mcphttp checks the headers of clients.
package headerparam

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rawjson"
)

// annotation is the schema keyword that marks an argument that requests repeat in an HTTP header
// (MCP 2026-07-28, basic/transports, custom headers from tool parameters).
const annotation = "x-mcp-header"

// FromSchema returns the arguments that a tool's input schema marks, sorted by header. The error says which annotation
// breaks the rules. A tool with such a schema must not be called over HTTP.
func FromSchema(schema json.RawMessage) ([]core.Mirror, error) {
	if !bytes.Contains(schema, []byte(`"`+annotation+`"`)) {
		return nil, nil // the usual case
	}
	var root any
	if err := json.Unmarshal(schema, &root); err != nil {
		return nil, err
	}
	found := marks{used: map[string]bool{}}
	if err := found.read(root, nil, true); err != nil {
		return nil, err
	}
	slices.SortFunc(found.list, func(a, b core.Mirror) int { return strings.Compare(a.Header, b.Header) })
	return found.list, nil
}

// marks collects the marked arguments of one schema.
type marks struct {
	list []core.Mirror
	used map[string]bool // header names in lower case
}

// read walks a schema. reachable is true if only "properties" keywords lead to it: nothing else may be marked, because
// no path could locate the value.
func (m *marks) read(schema any, path []string, reachable bool) error {
	members, ok := schema.(map[string]any)
	if !ok {
		return nil
	}
	if mark, marked := members[annotation]; marked {
		if err := m.add(mark, members["type"], path, reachable); err != nil {
			return err
		}
	}
	for keyword, inner := range members {
		if err := m.readKeyword(keyword, inner, path, reachable); err != nil {
			return err
		}
	}
	return nil
}

// readKeyword walks the schemas in a keyword of JSON Schema 2020-12. Keywords that contain data,
// such as examples, are skipped.
func (m *marks) readKeyword(keyword string, inner any, path []string, reachable bool) error {
	switch keyword {
	case "properties":
		named, _ := inner.(map[string]any)
		for name, schema := range named {
			if err := m.read(schema, append(slices.Clone(path), name), reachable); err != nil {
				return err
			}
		}
	case "$defs", "definitions", "patternProperties", "dependentSchemas":
		named, _ := inner.(map[string]any)
		for _, schema := range named {
			if err := m.read(schema, path, false); err != nil {
				return err
			}
		}
	case "items", "prefixItems", "contains", "additionalProperties", "unevaluatedItems", "unevaluatedProperties", "propertyNames",
		"oneOf", "anyOf", "allOf", "not", "if", "then", "else":
		list, ok := inner.([]any)
		if !ok {
			list = []any{inner}
		}
		for _, schema := range list {
			if err := m.read(schema, path, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// add records a marked argument, or returns an error if it must not be marked.
func (m *marks) add(mark, kind any, path []string, reachable bool) error {
	at := strings.Join(path, ".")
	header, _ := mark.(string)
	switch {
	case !reachable || len(path) == 0:
		return fmt.Errorf("%s marks an argument that cannot be reached by properties alone, at %.100q", annotation, at)
	case !httpguts.ValidHeaderFieldName(header):
		return fmt.Errorf("the %s of %.100q must be a header name", annotation, at)
	case !fitsHeader(kind):
		return fmt.Errorf("%s marks %.100q, which is not a string, an integer or a boolean", annotation, at)
	case m.used[strings.ToLower(header)]:
		return fmt.Errorf("%s uses %.100q twice", annotation, header)
	}
	m.used[strings.ToLower(header)] = true
	m.list = append(m.list, core.Mirror{Header: header, Path: path})
	return nil
}

// fitsHeader reports whether a header can carry values of a type, or of every type in a list, ignoring null.
func fitsHeader(kind any) bool {
	switch kind := kind.(type) {
	case string:
		return kind == "string" || kind == "integer" || kind == "boolean"
	case []any:
		found := false
		for _, one := range kind {
			if one == "null" {
				continue
			}
			if found = true; !fitsHeader(one) {
				return false
			}
		}
		return found
	}
	return false
}

// Prefix is the prefix of the names of headers that repeat arguments of a tool call.
const Prefix = "Mcp-Param-"

// The start and end of the base64 form of a value that a header cannot carry unchanged.
const (
	encodedStart = "=?base64?"
	encodedEnd   = "?="
)

// Encode returns a value unchanged if a header can carry it, and in base64 form otherwise.
func Encode(value string) string {
	encoded := strings.HasPrefix(value, encodedStart) && strings.HasSuffix(value, encodedEnd)
	special := strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' })
	if value != "" && !encoded && !special && strings.TrimSpace(value) == value { // many implementations drop empty headers
		return value
	}
	return encodedStart + base64.StdEncoding.EncodeToString([]byte(value)) + encodedEnd
}

// Decode is the inverse of Encode. It returns false for a value in base64 form that is not valid base64.
func Decode(value string) (string, bool) {
	inner, opened := strings.CutPrefix(value, encodedStart)
	inner, closed := strings.CutSuffix(inner, encodedEnd)
	if !opened || !closed {
		return value, true
	}
	text, err := base64.StdEncoding.Strict().DecodeString(inner)
	return string(text), err == nil
}

// Header returns the headers that repeat arguments of a tools/call. There is no header for an
// argument that is absent or null, or is not a string, a boolean or an integer below 2^53.
func Header(mirrors []core.Mirror, params json.RawMessage) http.Header {
	if len(mirrors) == 0 {
		return nil
	}
	arguments := member(params, "arguments")
	header := http.Header{}
	for _, m := range mirrors {
		if text, ok := headerText(valueAt(arguments, m.Path)); ok {
			header.Set(Prefix+m.Header, Encode(text))
		}
	}
	return header
}

// valueAt returns the value at a path of members, or nil if there is none.
func valueAt(value json.RawMessage, path []string) json.RawMessage {
	for _, name := range path {
		value = member(value, name)
	}
	return value
}

// member returns a member of an object, or nil if there is none.
func member(object json.RawMessage, name string) json.RawMessage {
	if len(object) == 0 || object[0] != '{' {
		return nil
	}
	found, err := rawjson.Find(object, name)
	if err != nil {
		return nil
	}
	return found.In(object)
}

// headerText returns the header text for a JSON value. It returns false if a header cannot repeat the value.
func headerText(value json.RawMessage) (string, bool) {
	var decoded any
	if json.Unmarshal(value, &decoded) != nil {
		return "", false
	}
	switch v := decoded.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), v == math.Trunc(v) && math.Abs(v) < 1<<53
	}
	return "", false
}

// Agrees reports whether a header matches an argument. lines contains the header's values, one for each header line.
// There must be exactly one line for a string, a boolean, or an integer below 2^53, and none for an argument that is
// absent or null.
func Agrees(lines []string, parameter core.Mirror, arguments json.RawMessage) bool {
	value, unique := argument(arguments, parameter.Path)
	if !unique {
		return false
	}
	if value == nil || string(value) == "null" {
		return len(lines) == 0
	}
	if len(lines) != 1 || !isPlainASCII(lines[0]) {
		return false
	}
	decoded, ok := Decode(lines[0])
	if !ok {
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

// argument returns the value at a path of members, or nil. It returns false if a key occurs twice, because
// another parser might use the other value.
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

// isPlainASCII reports whether a header contains only characters that need no encoding.
func isPlainASCII(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return r != '\t' && (r < ' ' || r > '~') })
}

// sameInteger compares integers regardless of notation: 1, 1.0 and 1e0 are equal. Integers from 2^53 on
// never match, because not every parser reads them as the same number.
func sameInteger(a, b string) bool {
	x, err := strconv.ParseFloat(a, 64)
	y, bad := strconv.ParseFloat(b, 64)
	return err == nil && bad == nil && x == y && x == math.Trunc(x) && math.Abs(x) < 1<<53
}
