package tools

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rawjson"
)

// listedForm returns a tool's definition as clients receive it.
func listedForm(t core.Tool) json.RawMessage {
	if t.Listed != nil {
		return t.Listed
	}
	return t.Raw
}

// withUsableOutput removes an output schema that is invalid or has unresolvable references. The official TypeScript
// client rejects the whole list because of one such schema, or rejects every call to the tool.
func (n *Namespace) withUsableOutput(t core.Tool, raw json.RawMessage) (json.RawMessage, error) {
	var tool struct {
		OutputSchema json.RawMessage `json:"outputSchema"`
	}
	if err := json.Unmarshal(raw, &tool); err != nil || tool.OutputSchema == nil {
		return raw, err
	}
	err := n.validator.CheckOutputSchema(tool.OutputSchema)
	if err == nil {
		return raw, nil
	}
	n.o.Logger.Warn("left out a tool's output schema, which is not valid", "server", t.Server, "tool", t.Name, "error", err)
	return rawjson.Without(raw, "outputSchema")
}

// sessionForm converts a valid definition to the form of the revisions with sessions (MCP 2025-11-25, schema: Tool).
// It returns nil if nothing has to change. In those revisions, results are objects, and the schema of a property is
// not a boolean.
func sessionForm(raw json.RawMessage) json.RawMessage {
	output := true
	edited, err := rawjson.Edit(raw, func(name string, value json.RawMessage) (json.RawMessage, error) {
		switch name {
		case "inputSchema":
			return withoutBooleans(value)
		case "outputSchema":
			typed, err := objectOnly(value)
			if output = typed != nil; err != nil || !output {
				return nil, err
			}
			return withoutBooleans(typed)
		}
		return nil, nil
	})
	if err == nil && !output {
		edited, err = rawjson.Without(edited, "outputSchema")
	}
	if err != nil || bytes.Equal(edited, raw) {
		return nil
	}
	return edited
}

// objectOnly returns an output schema that only allows objects, or nil if schema does not allow objects.
func objectOnly(schema json.RawMessage) (json.RawMessage, error) {
	var s struct {
		Type any `json:"type"`
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, err
	}
	switch several, _ := s.Type.([]any); {
	case s.Type == "object":
		return schema, nil
	case s.Type == nil, slices.Contains(several, any("object")):
		return rawjson.Set(schema, rawjson.Member{Name: "type", Value: json.RawMessage(`"object"`)})
	default:
		return nil, nil
	}
}

// withoutBooleans replaces boolean schemas of properties with equivalent objects.
func withoutBooleans(schema json.RawMessage) (json.RawMessage, error) {
	return rawjson.EditMember(schema, "properties", func(properties json.RawMessage) (json.RawMessage, error) {
		return rawjson.Edit(properties, func(_ string, value json.RawMessage) (json.RawMessage, error) {
			switch string(value) {
			case "true":
				return json.RawMessage(`{}`), nil
			case "false":
				return json.RawMessage(`{"not":{}}`), nil
			}
			return nil, nil
		})
	})
}
