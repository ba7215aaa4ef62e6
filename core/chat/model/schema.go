package model

import (
	"encoding/json"
	"slices"
)

// SafeSchema is a tool's input schema as every provider takes it: an object with properties. What
// is left out is still checked before the tool is called.
func SafeSchema(raw json.RawMessage) map[string]any {
	var schema map[string]any
	if json.Unmarshal(raw, &schema) != nil || schema == nil {
		schema = map[string]any{}
	}
	schema["type"] = "object"
	if _, ok := schema["properties"].(map[string]any); !ok {
		schema["properties"] = map[string]any{}
	}
	for _, key := range []string{"oneOf", "anyOf", "allOf", "not", "enum", "const", "if", "then", "else"} { // refused at the root
		delete(schema, key)
	}
	if required, ok := schema["required"].([]any); ok && slices.ContainsFunc(required, notText) || schema["required"] != nil && !ok {
		delete(schema, "required")
	}
	return schema
}

func notText(v any) bool {
	_, ok := v.(string)
	return !ok
}

// Object is a tool's input as every provider takes it back: {} when it is no object.
func Object(input json.RawMessage) json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal(input, &object) != nil || object == nil {
		return json.RawMessage("{}")
	}
	return input
}
