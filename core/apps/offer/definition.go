package offer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/core/rawjson"
)

// anyObject is the input schema of tools whose app does not provide one.
const anyObject = `{"type":"object"}`

// repair makes the definition of a tool valid (MCP 2026-07-28, schema: Tool). Clients may reject a whole list because
// of a single invalid definition.
type repair struct {
	faults []string // what was wrong and could be repaired
	err    error    // what was wrong and cannot be repaired
}

// fix returns the replacement for the value at a path: nil to remove it, or the value itself if it is valid.
type fix func(path string, value json.RawMessage) json.RawMessage

// validTool returns the definition of a tool for clients, and what was wrong with the original. A valid definition is
// returned unchanged. Dropping invalid parts is safe because they only advise clients: the app checks its arguments
// itself.
func validTool(raw json.RawMessage) (valid json.RawMessage, faults []string, err error) {
	var r repair
	hasInput := false
	valid = r.members("", raw, map[string]fix{
		"title": r.kind("a string"), "description": r.kind("a string"), "_meta": r.kind("an object"),
		"inputSchema": func(path string, value json.RawMessage) json.RawMessage {
			hasInput = true
			return r.input(path, value)
		},
		"outputSchema": r.object(map[string]fix{"$schema": r.kind("a string"), "properties": r.properties, "required": r.required}),
		"annotations": r.object(map[string]fix{
			"title": r.kind("a string"), "readOnlyHint": r.kind("a boolean"), "destructiveHint": r.kind("a boolean"),
			"idempotentHint": r.kind("a boolean"), "openWorldHint": r.kind("a boolean"),
		}),
		"execution": r.object(map[string]fix{"taskSupport": r.oneOf("required", "optional", "forbidden")}),
		"icons":     r.icons,
	})
	if !hasInput && r.err == nil {
		r.faults = append(r.faults, "inputSchema is missing")
		valid, r.err = rawjson.Set(valid, rawjson.Member{Name: "inputSchema", Value: json.RawMessage(anyObject)})
	}
	return valid, r.faults, r.err
}

// members applies fixes to the members of an object.
func (r *repair) members(path string, object json.RawMessage, fixes map[string]fix) json.RawMessage {
	var removed []string
	fixed, err := rawjson.Edit(object, func(name string, value json.RawMessage) (json.RawMessage, error) {
		fix, known := fixes[name]
		if !known {
			return nil, nil
		}
		switch after := fix(path+name, value); {
		case after == nil:
			removed = append(removed, name)
			return nil, nil
		case bytes.Equal(after, value):
			return nil, nil
		default:
			return after, nil
		}
	})
	if err == nil && len(removed) > 0 {
		fixed, err = rawjson.Without(fixed, removed...)
	}
	if err != nil {
		r.err = errors.Join(r.err, err)
		return object
	}
	return fixed
}

// mismatch records that a value does not have the required kind.
func (r *repair) mismatch(path string, value json.RawMessage, want string) {
	r.faults = append(r.faults, fmt.Sprintf("%.100s is %s, but must be %s", path, kindOf(value), want))
}

func (r *repair) kind(want string) fix {
	return func(path string, value json.RawMessage) json.RawMessage {
		if kindOf(value) == want {
			return value
		}
		r.mismatch(path, value, want)
		return nil
	}
}

func (r *repair) object(fixes map[string]fix) fix {
	return func(path string, value json.RawMessage) json.RawMessage {
		if value = r.kind("an object")(path, value); value == nil {
			return nil
		}
		return r.members(path+".", value, fixes)
	}
}

func (r *repair) oneOf(words ...string) fix {
	return func(path string, value json.RawMessage) json.RawMessage {
		var word string
		if json.Unmarshal(value, &word) == nil && slices.Contains(words, word) {
			return value
		}
		r.faults = append(r.faults, fmt.Sprintf("%s must be one of %q", path, words))
		return nil
	}
}

// input makes an input schema valid. An absent schema, which includes PHP's empty array, becomes one that accepts every
// object.
func (r *repair) input(path string, value json.RawMessage) json.RawMessage {
	var elements []json.RawMessage
	switch kind := kindOf(value); {
	case kind == "an object":
	case kind == "null", string(value) == "true", json.Unmarshal(value, &elements) == nil && len(elements) == 0:
		r.mismatch(path, value, "an object")
		return json.RawMessage(anyObject)
	default:
		r.err = fmt.Errorf("its %s is %s, but must be an object", path, kind)
		return value
	}
	typed := false
	value = r.members(path+".", value, map[string]fix{
		"$schema": r.kind("a string"), "properties": r.properties, "required": r.required,
		"type": func(path string, value json.RawMessage) json.RawMessage {
			typed = true
			return r.inputType(path, value)
		},
	})
	if typed || r.err != nil {
		return value
	}
	r.faults = append(r.faults, path+".type is missing")
	value, r.err = rawjson.Set(value, rawjson.Member{Name: "type", Value: json.RawMessage(`"object"`)})
	return value
}

func (r *repair) inputType(path string, value json.RawMessage) json.RawMessage {
	var one string
	var several []string
	switch {
	case kindOf(value) != "null" && json.Unmarshal(value, &one) == nil && one == "object":
		return value
	case kindOf(value) == "null", json.Unmarshal(value, &several) == nil && slices.Contains(several, "object"):
		r.faults = append(r.faults, path+` must be "object"`)
		return json.RawMessage(`"object"`)
	default:
		r.err = fmt.Errorf(`its %s is %.100s, but must be "object"`, path, value)
		return value
	}
}

// properties replaces every invalid property schema with one that accepts everything.
func (r *repair) properties(path string, value json.RawMessage) json.RawMessage {
	if value = r.kind("an object")(path, value); value == nil {
		return nil
	}
	fixed, err := rawjson.Edit(value, func(name string, schema json.RawMessage) (json.RawMessage, error) {
		if kind := kindOf(schema); kind == "an object" || kind == "a boolean" {
			return nil, nil
		}
		r.mismatch(path+"."+name, schema, "a schema")
		return json.RawMessage(`{}`), nil
	})
	if err != nil {
		r.err = errors.Join(r.err, err)
		return value
	}
	return fixed
}

// required keeps only the strings in a list.
func (r *repair) required(path string, value json.RawMessage) json.RawMessage {
	return r.elements(path, value, "a list of strings", func(element json.RawMessage) bool { return kindOf(element) == "a string" })
}

// icons keeps only the valid icons in a list.
func (r *repair) icons(path string, value json.RawMessage) json.RawMessage {
	return r.elements(path, value, "a list of icons", func(element json.RawMessage) bool {
		var check repair
		check.object(map[string]fix{
			"src": check.kind("a string"), "mimeType": check.kind("a string"), "sizes": check.required, "theme": check.oneOf("light", "dark"),
		})("", element)
		var icon struct {
			Src *string `json:"src"`
		}
		return len(check.faults) == 0 && check.err == nil && json.Unmarshal(element, &icon) == nil && icon.Src != nil
	})
}

func (r *repair) elements(path string, value json.RawMessage, want string, valid func(json.RawMessage) bool) json.RawMessage {
	var all []json.RawMessage
	if kindOf(value) != "an array" || json.Unmarshal(value, &all) != nil {
		r.mismatch(path, value, want)
		return nil
	}
	kept := make([]json.RawMessage, 0, len(all))
	for i, element := range all {
		if valid(element) {
			kept = append(kept, element)
			continue
		}
		r.faults = append(r.faults, fmt.Sprintf("%s[%d] is not valid in %s", path, i, want))
	}
	if len(kept) == len(all) {
		return value
	}
	return rawjson.Array(kept)
}

// kindOf returns the kind of a JSON value, with an article, for messages.
func kindOf(value json.RawMessage) string {
	value = bytes.TrimLeft(value, " \t\r\n")
	if len(value) == 0 {
		return "nothing"
	}
	switch value[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}
