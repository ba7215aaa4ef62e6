package schema

import (
	"encoding/json"
)

// Fill sets the schema's defaults for everything that is not set, including inside mappings and lists.
func (s *Schema) Fill(value map[string]any) { s.fill(s.root, value) }

func (s *Schema) fill(part map[string]any, value any) {
	switch value := value.(type) {
	case map[string]any:
		properties, _ := part["properties"].(map[string]any)
		for key, p := range properties {
			child, _ := p.(map[string]any)
			if byDefault, has := child["default"]; has && value[key] == nil {
				value[key] = clone(byDefault)
			}
		}
		for key, v := range value {
			if child := childOf(part, key); child != nil {
				s.fill(child, v)
			}
		}
	case []any:
		items := s.itemsOf(part)
		for _, item := range value {
			s.fill(items, item)
		}
	}
}

// itemsOf returns the schema of a list's entries, or nil.
func (s *Schema) itemsOf(part map[string]any) map[string]any {
	items, _ := part["items"].(map[string]any)
	if ref, is := items["$ref"].(string); is {
		return s.At(ref)
	}
	return items
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
