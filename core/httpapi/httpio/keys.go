package httpio

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rawjson"
)

// checkSyntax checks a body against RFC 8259 and the nesting limit, and rejects duplicate names.
func checkSyntax(body []byte) error {
	err := rawjson.CheckUnique(body)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, rawjson.ErrDuplicate):
		return invalid(err.Error())
	case errors.Is(err, rawjson.ErrDepth):
		return invalid("it is " + err.Error())
	}
	if detail := json.Unmarshal(body, &json.RawMessage{}); detail != nil { // this error includes the position
		return invalid("it is not JSON: " + strings.TrimPrefix(detail.Error(), "json: "))
	}
	return invalid("it is not JSON")
}

// checkFields checks a valid value against the type it will be decoded into: structs determine which names are known,
// and strings must be strings. It does not descend into values of any other type, so the depth of t bounds the work.
func checkFields(value []byte, path string, t reflect.Type) error {
	if t == nil {
		return nil
	}
	if got := kindOf(value); t.Kind() == reflect.String && got != "string" && got != "null" {
		return core.Errorf(core.CodeBadRequest, "%s must be a string, not %s", path, article(got)) // encoding/json would not name the key of a map
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch kind := kindOf(value); {
	case kind == "array" && t.Kind() == reflect.Slice:
		for element := range rawjson.Elements(value) {
			if err := checkElement(element, path+"[]", t.Elem()); err != nil {
				return err
			}
		}
	case kind == "object" && (t.Kind() == reflect.Struct || t.Kind() == reflect.Map):
		return checkMembers(value, path, t)
	}
	return nil
}

// checkElement is checkFields for the elements of a list or a map. There, null does not mean absent: only pointers,
// interfaces and raw JSON may be null.
func checkElement(value []byte, path string, t reflect.Type) error {
	if kindOf(value) == "null" && t.Kind() != reflect.Interface && t.Kind() != reflect.Pointer && t != reflect.TypeFor[json.RawMessage]() {
		return core.Errorf(core.CodeBadRequest, "%s must not be null", path)
	}
	return checkFields(value, path, t)
}

func checkMembers(object []byte, path string, t reflect.Type) (err error) {
	known := fieldsOf(t)
	rawjson.Members(object, nil, func(name string, value json.RawMessage) bool {
		field := known.find(name)
		switch {
		case t.Kind() == reflect.Map:
			err = checkElement(value, strings.TrimPrefix(path+"."+name, "."), t.Elem())
		case field.name != "" && field.name != name:
			err = invalid(strings.TrimPrefix(path+"."+name, ".") + " is not a field; did you mean " + field.name + "?")
		case field.of != nil:
			err = checkFields(value, strings.TrimPrefix(path+"."+name, "."), field.of)
		}
		return err == nil
	})
	return err
}

// kindOf returns encoding/json's name for the kind of a value.
func kindOf(value []byte) string {
	value = bytes.TrimLeft(value, " \t\r\n")
	switch value[0] {
	case '[':
		return "array"
	case '{':
		return "object"
	case '"':
		return "string"
	case 't', 'f':
		return "bool"
	case 'n':
		return "null"
	}
	return "number"
}

type field struct {
	name string
	of   reflect.Type
}

type fields []field

// fieldsOf returns the fields of a struct with their JSON names, or nil for other types.
func fieldsOf(t reflect.Type) fields {
	if t.Kind() != reflect.Struct {
		return nil
	}
	var all fields
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		all = append(all, field{name: name, of: f.Type})
	}
	return all
}

// find returns the field that encoding/json would decode name into, ignoring case by Unicode folding. It returns the
// zero field if there is none.
func (all fields) find(name string) field {
	for _, f := range all {
		if strings.EqualFold(f.name, name) {
			return f
		}
	}
	return field{}
}
