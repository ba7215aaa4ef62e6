package headerparam

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/ropewalk/ropewalk/core"
)

// annotation marks an argument in an input schema that requests repeat in an HTTP header
// (MCP 2026-07-28, basic/transports, custom headers from tool parameters).
const annotation = "x-mcp-header"

// FromSchema returns the arguments that a tool's input schema marks, sorted by header. The
// error says which mark breaks the rules: over HTTP such a tool must not be called.
func FromSchema(schema json.RawMessage) ([]core.Mirror, error) {
	if !bytes.Contains(schema, []byte(`"`+annotation+`"`)) {
		return nil, nil // as nearly always
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

// marks are the marked arguments of one schema.
type marks struct {
	list []core.Mirror
	used map[string]bool // header names in lower case
}

// read walks a schema. reachable is true when only properties lead to it: elsewhere nothing may be
// marked, because no path says where the value is.
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

// readKeyword walks the schemas that a keyword of JSON Schema 2020-12 holds. Keywords that hold data,
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

// add notes one marked argument, if it may be marked.
func (m *marks) add(mark, kind any, path []string, reachable bool) error {
	at := strings.Join(path, ".")
	header, _ := mark.(string)
	switch {
	case !reachable || len(path) == 0:
		return fmt.Errorf("%s marks an argument that cannot be reached by properties alone, at %.100q", annotation, at)
	case !httpguts.ValidHeaderFieldName(header):
		return fmt.Errorf("%s of %.100q must be a header name", annotation, at)
	case !fitsHeader(kind):
		return fmt.Errorf("%s marks %.100q, which is not a string, an integer or a boolean", annotation, at)
	case m.used[strings.ToLower(header)]:
		return fmt.Errorf("%s uses %.100q twice", annotation, header)
	}
	m.used[strings.ToLower(header)] = true
	m.list = append(m.list, core.Mirror{Header: header, Path: path})
	return nil
}

// fitsHeader reports whether values of a type, or of each of several types besides null, fit into a header.
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
