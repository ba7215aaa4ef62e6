package headerparam

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/ropewalk/ropewalk/core"
)

func TestAnnotatedArgumentsOfASchema(t *testing.T) {
	for _, c := range []struct {
		name, schema string
		want         []core.Mirror
		wrong        bool
	}{
		{"none", `{"type":"object","properties":{"a":{"type":"string"}}}`, nil, false},
		{"one", `{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}`, []core.Mirror{{Header: "A", Path: []string{"a"}}}, false},
		{"nested arguments, by header", `{"properties":{"o":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"},"b":{"type":"boolean","x-mcp-header":"B"}}}}}`,
			[]core.Mirror{{Header: "B", Path: []string{"o", "b"}}, {Header: "N", Path: []string{"o", "n"}}}, false},
		{"one that may be null", `{"properties":{"a":{"type":["string","null"],"x-mcp-header":"A"}}}`, []core.Mirror{{Header: "A", Path: []string{"a"}}}, false},
		{"an argument with that name", `{"properties":{"x-mcp-header":{"type":"string"}}}`, nil, false},
		{"data that looks like an annotation", `{"default":{"x-mcp-header":"A"},"properties":{"a":{"examples":[{"x-mcp-header":"A"}]}}}`, nil, false},
		{"an empty name", `{"properties":{"a":{"type":"string","x-mcp-header":""}}}`, nil, true},
		{"a name that is not a string", `{"properties":{"a":{"type":"string","x-mcp-header":5}}}`, nil, true},
		{"a name with a space", `{"properties":{"a":{"type":"string","x-mcp-header":"A b"}}}`, nil, true},
		{"a name with a line break", `{"properties":{"a":{"type":"string","x-mcp-header":"A\r\nX"}}}`, nil, true},
		{"the same name in another case", `{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}`, nil, true},
		{"a number", `{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}`, nil, true},
		{"an object", `{"properties":{"a":{"type":"object","x-mcp-header":"A"}}}`, nil, true},
		{"no type", `{"properties":{"a":{"x-mcp-header":"A"}}}`, nil, true},
		{"the whole schema", `{"type":"string","x-mcp-header":"A"}`, nil, true},
		{"in an array", `{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}`, nil, true},
		{"in an alternative", `{"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}`, nil, true},
		{"in a condition", `{"if":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}`, nil, true},
		{"in a definition", `{"$defs":{"d":{"type":"string","x-mcp-header":"A"}},"properties":{"a":{"$ref":"#/$defs/d"}}}`, nil, true},
		{"not an object", `5`, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := FromSchema(json.RawMessage(c.schema))
			if (err != nil) != c.wrong || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %v (%v)", got, err)
			}
		})
	}
}
