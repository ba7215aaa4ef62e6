package plugins

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Checker is a settings struct with its own rules, such as a required setting. Decode calls Check after decoding, so
// that its problems are reported with all others.
type Checker interface {
	Check(problems *ConfigError)
}

// Decode decodes the settings into the struct that into points to, whose current values are the
// defaults. Unknown settings, settings given twice, null and wrong types are problems; names are
// case-sensitive. All problems are returned at once, as a *ConfigError.
//
// Fields carry a json tag with their name; fields without one are not settings. Structs, pointers
// to structs, slices, maps with string keys, and everything encoding/json can read are allowed.
func (c Config) Decode(into any) error {
	target := reflect.ValueOf(into)
	if target.Kind() != reflect.Pointer || target.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("decode settings: need a pointer to a struct, got %T", into)
	}
	raw := c.JSON
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	problems := &ConfigError{}
	if err := wellFormed(raw); err != nil {
		problems.Add("", "must be one JSON object: %v", err)
		return problems
	}
	decodeStruct(problems, "", raw, target.Elem())
	if check, ok := into.(Checker); ok {
		check.Check(problems)
	}
	problems.Problems = firstPerPath(problems.Problems)
	return problems.Err()
}

// wellFormed returns the decoder's own errors, which give the position and never the value of a string.
func wellFormed(raw []byte) error {
	var value json.RawMessage
	dec := json.NewDecoder(bytes.NewReader(raw))
	if err := dec.Decode(&value); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows it")
	}
	return nil
}

// firstPerPath keeps the first problem of each path. This drops a rule's problem with a setting that could
// not be decoded.
func firstPerPath(all []Problem) []Problem {
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(p Problem) bool {
		again := p.Path != "" && seen[p.Path]
		seen[p.Path] = true
		return again
	})
}

// readsText reports whether values of t can unmarshal themselves from text.
func readsText(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

func readsJSON(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
}

func decodeValue(problems *ConfigError, path string, raw json.RawMessage, v reflect.Value) {
	if kindOf(raw) == "null" {
		problems.Add(path, "must not be null; leave it out to get the default")
		return
	}
	if readsJSON(v.Type()) || readsText(v.Type()) {
		decodeLeaf(problems, path, raw, v)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		decodeStruct(problems, path, raw, v)
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		decodeValue(problems, path, raw, v.Elem())
	case reflect.Slice:
		decodeSlice(problems, path, raw, v)
	case reflect.Map:
		decodeMap(problems, path, raw, v)
	default:
		decodeLeaf(problems, path, raw, v)
	}
}

func decodeStruct(problems *ConfigError, path string, raw json.RawMessage, v reflect.Value) {
	members, ok := membersOf(problems, path, raw)
	if !ok {
		return
	}
	fields, names := map[string]int{}, []string{}
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		fields[name] = i
		names = append(names, name)
	}
	for _, m := range members {
		at := join(path, m.name)
		i, known := fields[m.name]
		if !known {
			problems.Problems = append(problems.Problems, Problem{Path: at, Message: "is not a setting", Nearest: nearest(m.name, names)})
			continue
		}
		decodeValue(problems, at, m.value, v.Field(i))
	}
}

func decodeSlice(problems *ConfigError, path string, raw json.RawMessage, v reflect.Value) {
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		problems.Add(path, "must be a list, not %s", kindOf(raw))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(items), len(items)))
	for i, item := range items {
		decodeValue(problems, fmt.Sprintf("%s[%d]", path, i), item, v.Index(i))
	}
}

func decodeMap(problems *ConfigError, path string, raw json.RawMessage, v reflect.Value) {
	members, ok := membersOf(problems, path, raw)
	if !ok {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, m := range members {
		item := reflect.New(v.Type().Elem()).Elem()
		decodeValue(problems, join(path, m.name), m.value, item)
		v.SetMapIndex(reflect.ValueOf(m.name).Convert(v.Type().Key()), item)
	}
}

// decodeLeaf decodes with encoding/json and rewords its errors so that they do not contain the value.
func decodeLeaf(problems *ConfigError, path string, raw json.RawMessage, v reflect.Value) {
	err := json.Unmarshal(raw, v.Addr().Interface())
	if err == nil {
		return
	}
	if _, wrongType := errors.AsType[*json.UnmarshalTypeError](err); !wrongType {
		problems.Add(path, "%v", err)
		return
	}
	want, got := wanted(v.Type()), kindOf(raw)
	if got == "a number" && strings.Contains(want, "number") {
		problems.Add(path, "must be %s within range", want)
		return
	}
	problems.Add(path, "must be %s, not %s", want, got)
}

func wanted(t reflect.Type) string {
	if readsText(t) {
		return "a string"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number, not negative,"
	default:
		return "a string"
	}
}

func kindOf(raw json.RawMessage) string {
	switch trimmed := bytes.TrimSpace(raw); {
	case len(trimmed) == 0, trimmed[0] == 'n':
		return "null"
	case trimmed[0] == '{':
		return "an object"
	case trimmed[0] == '[':
		return "a list"
	case trimmed[0] == '"':
		return "a string"
	case trimmed[0] == 't', trimmed[0] == 'f':
		return "true or false"
	}
	return "a number"
}

type member struct {
	name  string
	value json.RawMessage
}

// membersOf returns the members in the order of the document, and reports repeated names.
func membersOf(problems *ConfigError, path string, raw json.RawMessage) ([]member, bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		problems.Add(path, "must be an object, not %s", kindOf(raw))
		return nil, false
	}
	var members []member
	seen := map[string]bool{}
	for dec.More() {
		key, err := dec.Token()
		name, ok := key.(string)
		if err != nil || !ok {
			problems.Add(path, "must be an object")
			return nil, false
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			problems.Add(join(path, name), "cannot be read")
			return nil, false
		}
		if seen[name] {
			problems.Add(join(path, name), "is given twice")
			continue
		}
		seen[name] = true
		members = append(members, member{name, value})
	}
	return members, true
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// nearest returns the name that a misspelled one most likely means, or "" if none is close.
func nearest(name string, names []string) string {
	best, distance := "", max(2, len(name)/3)+1
	for _, candidate := range names {
		if d := levenshtein.ComputeDistance(strings.ToLower(name), strings.ToLower(candidate)); d < distance {
			best, distance = candidate, d
		}
	}
	return best
}
