package schema

import (
	"encoding/json"
)

// Fill puts the schema's defaults where nothing is set, inside mappings too.
func (s *Schema) Fill(value map[string]any) { fill(s.root, value) }

func fill(part map[string]any, value map[string]any) {
	properties, _ := part["properties"].(map[string]any)
	for key, p := range properties {
		child, _ := p.(map[string]any)
		if byDefault, has := child["default"]; has && value[key] == nil {
			value[key] = clone(byDefault)
		}
	}
	for key, v := range value {
		if inner, isMap := v.(map[string]any); isMap {
			if child := childOf(part, key); child != nil {
				fill(child, inner)
			}
		}
	}
}

func clone(v any) any {
	raw, err := json.Marshal(v)
	if err != nil {
		return v
	}
	var out any
	if json.Unmarshal(raw, &out) != nil {
		return v
	}
	return out
}
