package apps

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// annotation marks, in an input schema, an argument that requests repeat in a header (MCP 2026-07-28,
// basic/transports, custom headers from tool parameters).
const annotation = "x-mcp-header"

// mirrorsOf are the arguments that a tool's input schema marks, by header. The error says which mark
// breaks the rules of the revision: a tool that has one must not be called by it.
func mirrorsOf(schema json.RawMessage) ([]core.Mirror, error) {
	if !bytes.Contains(schema, []byte(`"`+annotation+`"`)) {
		return nil, nil // as nearly always
	}
	var root any
	if err := json.Unmarshal(schema, &root); err != nil {
		return nil, err
	}
	found := markings{taken: map[string]bool{}}
	if err := found.read(root, nil, true); err != nil {
		return nil, err
	}
	slices.SortFunc(found.list, func(a, b core.Mirror) int { return strings.Compare(a.Header, b.Header) })
	return found.list, nil
}

// markings are the marked arguments of one schema.
type markings struct {
	list  []core.Mirror
	taken map[string]bool // header names in lower case
}

// read goes through a schema. reachable tells that only properties lead to it: elsewhere nothing may
// be marked, for no path would say where the value is.
func (m *markings) read(schema any, path []string, reachable bool) error {
	members, ok := schema.(map[string]any)
	if !ok {
		return nil
	}
	if mark, marked := members[annotation]; marked {
		if err := m.take(mark, members["type"], path, reachable); err != nil {
			return err
		}
	}
	for keyword, inner := range members {
		if err := m.below(keyword, inner, path, reachable); err != nil {
			return err
		}
	}
	return nil
}

// below goes through the schemas that a keyword of JSON Schema 2020-12 holds. What holds data, such
// as an example, is none of them.
func (m *markings) below(keyword string, inner any, path []string, reachable bool) error {
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

// take notes one marked argument, if that may be marked so.
func (m *markings) take(mark, kind any, path []string, reachable bool) error {
	at := strings.Join(path, ".")
	header, _ := mark.(string)
	switch {
	case !reachable || len(path) == 0:
		return fmt.Errorf("%s marks something that properties alone do not lead to, at %.100q", annotation, at)
	case !httpguts.ValidHeaderFieldName(header):
		return fmt.Errorf("%s of %.100q must be the end of a header's name", annotation, at)
	case !primitive(kind):
		return fmt.Errorf("%s marks %.100q, which is not a string, an integer or a boolean", annotation, at)
	case m.taken[strings.ToLower(header)]:
		return fmt.Errorf("%s says %.100q twice", annotation, header)
	}
	m.taken[strings.ToLower(header)] = true
	m.list = append(m.list, core.Mirror{Header: header, Path: path})
	return nil
}

// primitive reports whether a type, or each of several but null, fits into a header.
func primitive(kind any) bool {
	switch kind := kind.(type) {
	case string:
		return kind == "string" || kind == "integer" || kind == "boolean"
	case []any:
		some := false
		for _, one := range kind {
			if one == "null" {
				continue
			}
			if some = true; !primitive(one) {
				return false
			}
		}
		return some
	}
	return false
}

// codeHeaderMismatch is a remote app's word for headers that are not those its schema wants.
const codeHeaderMismatch = -32020

// refused looks at an error of the app: one about headers may mean that the schemas have changed, so
// the tools are read again, and the next call has the headers that they want.
func (a *app) refused(failure *rpc.Error) {
	if failure.Code != codeHeaderMismatch {
		return
	}
	if conn, ok := a.conn().(interface{ tell(core.Kind) }); ok {
		conn.tell(core.KindTools)
	}
}
