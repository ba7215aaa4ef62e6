// Package params converts what a person types to JSON of the type that a JSON Schema requires: the flags of
// `ropewalk tool call`, and the answers to an app's questions.
package params

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Schema is the part of an object's JSON Schema that is used here.
type Schema struct {
	Properties map[string]Property
	Required   []string
}

// Property is a parameter. Its type may be a list of names.
type Property struct {
	Type        json.RawMessage
	Title       string
	Description string
	Enum        []json.RawMessage
	Default     json.RawMessage
}

// Argument is a parameter as typed.
type Argument struct{ Name, Text string }

// Names returns the names of the parameters in order.
func (s Schema) Names() []string { return slices.Sorted(maps.Keys(s.Properties)) }

// Requires reports whether a parameter is required.
func (s Schema) Requires(name string) bool { return slices.Contains(s.Required, name) }

// Kind returns the type of a parameter: the first that is not null, or "" for any.
func (p Property) Kind() string {
	var one string
	if json.Unmarshal(p.Type, &one) == nil {
		return one
	}
	var several []string
	_ = json.Unmarshal(p.Type, &several) // a schema without a type accepts anything
	for _, t := range several {
		if t != "null" {
			return t
		}
	}
	return ""
}

// Value converts typed text to JSON of the parameter's type. Parameters of any type, objects and lists take
// JSON; text that is not JSON is used as a string where that is allowed.
func (p Property) Value(name, text string) (json.RawMessage, error) {
	switch p.Kind() {
	case "string":
		return json.Marshal(text)
	case "integer":
		if _, err := strconv.ParseInt(text, 10, 64); err != nil {
			return nil, fmt.Errorf("--%s must be a whole number, not %q", name, text)
		}
		return json.RawMessage(text), nil
	case "number":
		if _, err := strconv.ParseFloat(text, 64); err != nil || !json.Valid([]byte(text)) {
			return nil, fmt.Errorf("--%s must be a number, not %q", name, text)
		}
		return json.RawMessage(text), nil
	case "boolean":
		b, err := strconv.ParseBool(text)
		if err != nil {
			return nil, fmt.Errorf("--%s must be true or false, not %q", name, text)
		}
		return json.Marshal(b)
	case "object", "array":
		if !json.Valid([]byte(text)) {
			return nil, fmt.Errorf("--%s must be JSON (%s), not %q", name, p.Kind(), text)
		}
		return json.RawMessage(text), nil
	}
	if json.Valid([]byte(text)) {
		return json.RawMessage(text), nil
	}
	return json.Marshal(text)
}

// Arguments builds a call's arguments from typed text. A list that is given several times collects its values.
func (s Schema) Arguments(given []Argument) (map[string]json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	lists := map[string][]json.RawMessage{}
	for _, a := range given {
		p, known := s.Properties[a.Name]
		if !known && len(s.Properties) > 0 {
			return nil, fmt.Errorf("the tool has no parameter %q; it has %s", a.Name, strings.Join(s.Names(), ", "))
		}
		if p.Kind() == "array" && !strings.HasPrefix(strings.TrimSpace(a.Text), "[") {
			item, err := Property{}.Value(a.Name, a.Text)
			if err != nil {
				return nil, err
			}
			lists[a.Name] = append(lists[a.Name], item)
			continue
		}
		value, err := p.Value(a.Name, a.Text)
		if err != nil {
			return nil, err
		}
		all[a.Name] = value
	}
	for name, items := range lists {
		text, err := json.Marshal(items)
		if err != nil {
			return nil, err
		}
		all[name] = text
	}
	return all, nil
}
