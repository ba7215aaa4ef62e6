package schema

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
)

// Describe returns the schema of an adapter's settings, derived from the struct that they are decoded into,
// such as oidc.Settings{}. The json tags of its fields are the names of the settings. A type that can be
// unmarshaled from text is a string.
func Describe(kind, adapter string, settings any) Adapter {
	raw, err := json.Marshal(schemaOf(reflect.TypeOf(settings)))
	if err != nil { // cannot happen: it consists of maps and strings
		return Adapter{Kind: kind, Name: adapter}
	}
	return Adapter{Kind: kind, Name: adapter, Settings: raw}
}

// schemaOf returns the schema of a type. Unknown types may be anything.
func schemaOf(t reflect.Type) map[string]any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch p := reflect.PointerTo(t); {
	case p.Implements(reflect.TypeFor[json.Unmarshaler]()):
		return map[string]any{}
	case p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return map[string]any{"type": "string"}
	}
	switch t.Kind() {
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return map[string]any{"type": "integer"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Slice, reflect.Array:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case reflect.Struct:
		return structSchema(t)
	default:
		return map[string]any{}
	}
}

func structSchema(t reflect.Type) map[string]any {
	properties := make(map[string]any)
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.IsExported() && name != "" && name != "-" {
			properties[name] = schemaOf(field.Type)
		}
	}
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
}
