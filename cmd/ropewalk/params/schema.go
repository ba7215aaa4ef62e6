// Package params converts what a person types to JSON of the type that a JSON Schema requires: the flags of
// `ropewalk tool call`, and the answers to an app's questions.
package params

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Schema is the part of an object's JSON Schema that is used here.
type Schema struct {
	Properties map[string]Property
	Required   []string
	order      []string // the names in Properties, in the order of the schema
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Schema) UnmarshalJSON(raw []byte) error {
	type plain Schema
	var in struct{ Properties json.RawMessage }
	if err := errors.Join(json.Unmarshal(raw, (*plain)(s)), json.Unmarshal(raw, &in)); err != nil || len(s.Properties) == 0 {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(in.Properties))
	_, err := d.Token()
	for err == nil && d.More() {
		var name json.Token
		var value json.RawMessage
		if name, err = d.Token(); err == nil {
			err = d.Decode(&value)
		}
		if name, ok := name.(string); ok && !slices.Contains(s.order, name) {
			s.order = append(s.order, name)
		}
	}
	return err
}

// Property is a parameter. Its type may be a list of names.
type Property struct {
	Type        json.RawMessage
	Title       string
	Description string
	Enum        []json.RawMessage
	Default     json.RawMessage

	OneOf                json.RawMessage // an enum with titles
	Minimum, Maximum     json.RawMessage
	MinLength, MaxLength json.RawMessage
	Pattern, Format      json.RawMessage
}

// Choices returns the values that a parameter may have, or nil if they are not listed.
func (p Property) Choices() []json.RawMessage {
	if len(p.Enum) > 0 {
		return p.Enum
	}
	var titled []struct{ Const json.RawMessage }
	if json.Unmarshal(p.OneOf, &titled) != nil {
		return nil
	}
	var all []json.RawMessage
	for _, one := range titled {
		if len(one.Const) > 0 {
			all = append(all, one.Const)
		}
	}
	return all
}

// text returns a member of a schema if it is a string, and "" otherwise.
func text(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s)
	return s
}

// number returns a member of a schema if it is a number, and nil otherwise. It also returns nil for a number with an exponent, which
// may be too large to compute with.
func number(raw json.RawMessage) *big.Rat {
	if len(raw) > 40 || bytes.ContainsAny(raw, "eExXpP_/") {
		return nil
	}
	n, _ := new(big.Rat).SetString(string(raw))
	return n
}

// Limits describes the requirements on a value other than its type: "1 to 10", "at least 3
// characters, email".
func (p Property) Limits() string {
	var all []string
	for _, r := range []struct {
		low, high json.RawMessage
		unit      string
	}{{p.Minimum, p.Maximum, ""}, {p.MinLength, p.MaxLength, " characters"}} {
		switch low, high := number(r.low) != nil, number(r.high) != nil; {
		case low && high:
			all = append(all, fmt.Sprintf("%s to %s%s", r.low, r.high, r.unit))
		case low:
			all = append(all, fmt.Sprintf("at least %s%s", r.low, r.unit))
		case high:
			all = append(all, fmt.Sprintf("at most %s%s", r.high, r.unit))
		}
	}
	if format := text(p.Format); format != "" {
		all = append(all, format)
	}
	if pattern := text(p.Pattern); pattern != "" {
		all = append(all, "matching "+pattern)
	}
	return strings.Join(all, ", ")
}

// Check returns an error if a value of the parameter's type is not one of the choices or not within the limits.
// Formats are checked by the server.
func (p Property) Check(v json.RawMessage) error {
	if choices := p.Choices(); len(choices) > 0 {
		if !slices.ContainsFunc(choices, func(c json.RawMessage) bool { return string(c) == string(v) }) {
			return fmt.Errorf("must be one of %s", words(choices))
		}
		return nil
	}
	n, low, high := number(v), p.Minimum, p.Maximum
	pattern, _ := regexp.Compile(text(p.Pattern)) // nil if Go does not support it
	outside := false
	var s string
	if json.Unmarshal(v, &s) == nil {
		n, low, high = big.NewRat(int64(utf8.RuneCountInString(s)), 1), p.MinLength, p.MaxLength
		outside = pattern != nil && !pattern.MatchString(s)
	}
	if n != nil {
		lower, upper := number(low), number(high)
		outside = outside || lower != nil && n.Cmp(lower) < 0 || upper != nil && n.Cmp(upper) > 0
	}
	if outside {
		return fmt.Errorf("must be %s", p.Limits())
	}
	return nil
}

// words returns values as a person types them, separated by commas.
func words(all []json.RawMessage) string {
	texts := make([]string, len(all))
	for i, v := range all {
		texts[i] = strings.Trim(string(v), `"`)
	}
	return strings.Join(texts, ", ")
}

// Hint describes the values of a parameter: its choices, or its type and limits.
func (p Property) Hint() string {
	if choices := p.Choices(); len(choices) > 0 {
		return words(choices)
	}
	return strings.TrimPrefix(strings.TrimSuffix(p.Kind()+", "+p.Limits(), ", "), ", ")
}

// Argument is a parameter as typed.
type Argument struct{ Name, Text string }

// Names returns the names of the parameters in the order of the schema.
func (s Schema) Names() []string { return s.order }

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
func (p Property) Value(text string) (json.RawMessage, error) {
	switch p.Kind() {
	case "string":
		return json.Marshal(text)
	case "integer":
		if _, err := strconv.ParseInt(text, 10, 64); err != nil {
			return nil, fmt.Errorf("must be a whole number, not %q", text)
		}
		return json.RawMessage(text), nil
	case "number":
		if _, err := strconv.ParseFloat(text, 64); err != nil || !json.Valid([]byte(text)) {
			return nil, fmt.Errorf("must be a number, not %q", text)
		}
		return json.RawMessage(text), nil
	case "boolean":
		b, err := strconv.ParseBool(text)
		if err != nil {
			return nil, fmt.Errorf("must be true or false, not %q", text)
		}
		return json.Marshal(b)
	case "object", "array":
		if !json.Valid([]byte(text)) {
			return nil, fmt.Errorf("must be JSON (%s), not %q", p.Kind(), text)
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
			return nil, fmt.Errorf("the tool has no parameter %q; its parameters are %s", a.Name, strings.Join(s.Names(), ", "))
		}
		if p.Kind() == "array" && !strings.HasPrefix(strings.TrimSpace(a.Text), "[") {
			item, err := Property{}.Value(a.Text)
			if err != nil {
				return nil, fmt.Errorf("--%s %w", a.Name, err)
			}
			lists[a.Name] = append(lists[a.Name], item)
			continue
		}
		value, err := p.Value(a.Text)
		if err != nil {
			return nil, fmt.Errorf("--%s %w", a.Name, err)
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
