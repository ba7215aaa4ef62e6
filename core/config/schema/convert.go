package schema

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/core/config/layer"
)

// Convert gives values from ${env:NAME} the type that the schema expects: the text 8080 becomes a number if a number
// is expected, and remains text otherwise.
func (s *Schema) Convert(l *layer.Layer) {
	convertMapping(s.root, l.Value, "", l.Expanded)
}

func convertMapping(part, value map[string]any, path string, expanded map[string]bool) {
	for key, v := range value {
		child := settingOf(part, value, key)
		if child == nil {
			continue
		}
		value[key] = convertValue(child, v, layer.Join(path, key), expanded)
	}
}

func convertValue(part map[string]any, v any, path string, expanded map[string]bool) any {
	switch v := v.(type) {
	case map[string]any:
		convertMapping(part, v, path, expanded)
	case []any:
		items, _ := part["items"].(map[string]any)
		for i := range v {
			if items != nil {
				v[i] = convertValue(items, v[i], path+"["+strconv.Itoa(i)+"]", expanded)
			}
		}
	case string:
		if expanded[path] {
			return typed(part, v)
		}
	}
	return v
}

// typed parses a string as a YAML scalar if the schema does not accept text.
func typed(part map[string]any, text string) any {
	types := typesOf(part)
	if len(types) == 0 || slices.Contains(types, "string") {
		return text
	}
	parsed := layer.Plain(strings.TrimSpace(text))
	switch parsed.(type) {
	case json.Number:
		if slices.Contains(types, "integer") || slices.Contains(types, "number") {
			return parsed
		}
	case bool:
		if slices.Contains(types, "boolean") {
			return parsed
		}
	}
	return text // validation reports what is expected
}

func typesOf(part map[string]any) []string {
	switch t := part["type"].(type) {
	case string:
		return []string{t}
	case []any:
		var names []string
		for _, item := range t {
			if name, isText := item.(string); isText {
				names = append(names, name)
			}
		}
		return names
	}
	return nil
}

// settingOf returns the schema of one key in a mapping: the server's own, or that of the adapter the mapping
// names (Schema.add).
func settingOf(part, value map[string]any, key string) map[string]any {
	if child := childOf(part, key); child != nil {
		return child
	}
	conditions, _ := part["allOf"].([]any)
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		when, _ := condition["if"].(map[string]any)
		properties, _ := when["properties"].(map[string]any)
		adapter, _ := properties["adapter"].(map[string]any)
		if adapter["const"] != value["adapter"] {
			continue
		}
		if then, ok := condition["then"].(map[string]any); ok {
			return childOf(then, key)
		}
	}
	return nil
}
