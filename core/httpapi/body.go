package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"mime"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rawjson"
)

// readBody reads a JSON object into a T: core.CodeUnsupportedMedia unless it is declared as JSON,
// core.CodeBadRequest naming the field when a type is wrong. Fields that T does not have are
// ignored. Whatever two readers could read differently is refused: a key given twice, a key that
// differs from one of T's in case only, data after the object, text that is not UTF-8.
func readBody[T any](c *fiber.Ctx) (T, error) {
	var value T
	body := c.Context().PostBody() // never c.Body(), which inflates
	if len(body) == 0 {
		return value, badBody("it is empty; send a JSON object")
	}
	if err := checkMediaType(c); err != nil {
		return value, err
	}
	if !utf8.Valid(body) {
		return value, badBody("it is not UTF-8")
	}
	if err := checkJSON(body); err != nil {
		return value, err
	}
	if string(bytes.TrimSpace(body)) == "null" {
		return value, badBody("it must be a JSON object, not null")
	}
	if err := checkFields(body, "", reflect.TypeFor[T]()); err != nil {
		return value, err
	}
	if err := json.Unmarshal(body, &value); err != nil {
		return value, wrongType(err)
	}
	return value, nil
}

func checkMediaType(c *fiber.Ctx) error {
	media, params, err := mime.ParseMediaType(c.Get(fiber.HeaderContentType))
	charset := params["charset"]
	if err != nil || media != fiber.MIMEApplicationJSON || (charset != "" && !strings.EqualFold(charset, "utf-8")) {
		return core.Errorf(core.CodeUnsupportedMedia, "the Content-Type must be application/json")
	}
	if encoding := c.Get(fiber.HeaderContentEncoding); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return core.Errorf(core.CodeUnsupportedMedia, "a Content-Encoding is not accepted")
	}
	return nil
}

// checkJSON holds a body to RFC 8259, to the limit of nesting, and to names that come once.
func checkJSON(body []byte) error {
	err := rawjson.CheckUnique(body)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, rawjson.ErrDuplicate):
		return badBody(err.Error())
	case errors.Is(err, rawjson.ErrDepth):
		return badBody("it is not JSON that is read here: " + err.Error())
	}
	if detail := json.Unmarshal(body, &json.RawMessage{}); detail != nil { // says where
		return badBody("it is not JSON: " + strings.TrimPrefix(detail.Error(), "json: "))
	}
	return badBody("it is not JSON")
}

// checkFields holds a value, which checkJSON has passed, to the type that it will be read into: structs
// say which names are known, and texts must be strings. Nothing is looked at below any other type, so
// the depth of t bounds the work.
func checkFields(value []byte, path string, t reflect.Type) error {
	if t == nil {
		return nil
	}
	if got := kindOf(value); t.Kind() == reflect.String && got != "string" && got != "null" {
		return core.Errorf(core.CodeBadRequest, "%s must be a string, not %s", path, article(got)) // encoding/json does not name a map's key
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch kind := kindOf(value); {
	case kind == "array" && t.Kind() == reflect.Slice:
		for element := range rawjson.Elements(value) {
			if err := checkFields(element, path+"[]", t.Elem()); err != nil {
				return err
			}
		}
	case kind == "object" && (t.Kind() == reflect.Struct || t.Kind() == reflect.Map):
		return checkMembers(value, path, t)
	}
	return nil
}

func checkMembers(object []byte, path string, t reflect.Type) (err error) {
	known := fieldsOf(t)
	rawjson.Members(object, nil, func(name string, value json.RawMessage) bool {
		field := known.named(name)
		if t.Kind() == reflect.Map {
			field.of = t.Elem()
		}
		switch {
		case field.name != "" && field.name != name:
			err = badBody(strings.TrimPrefix(path+"."+name, ".") + " is not a field; did you mean " + field.name + "?")
		case field.of != nil:
			err = checkFields(value, strings.TrimPrefix(path+"."+name, "."), field.of)
		}
		return err == nil
	})
	return err
}

// kindOf is what encoding/json calls the kind of a value.
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

// fieldsOf returns the fields of a struct by their JSON names, none for other types.
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

// named returns the field that encoding/json would read name into: it folds case, Unicode's too.
func (all fields) named(name string) field {
	for _, f := range all {
		if strings.EqualFold(f.name, name) {
			return f
		}
	}
	return field{}
}

// wrongType says in JSON's words what encoding/json says in Go's.
func wrongType(err error) error {
	e, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return badBody("it cannot be read")
	}
	if e.Field == "" {
		return badBody("it must be a JSON object, not " + article(e.Value))
	}
	value, exact, _ := strings.Cut(e.Value, " ") // "number 1.5"
	want, got := "a number", article(value)
	switch e.Type.Kind() {
	case reflect.Int, reflect.Int64:
		want = "a whole number"
		if exact != "" {
			got = exact
		}
	case reflect.String:
		want = "a string"
	case reflect.Bool:
		want = "a boolean"
	case reflect.Struct, reflect.Map:
		want = "an object"
	case reflect.Slice, reflect.Array:
		want = "an array"
	default: // the other kinds of numbers
	}
	return core.Errorf(core.CodeBadRequest, "%s must be %s, not %s", e.Field, want, got)
}

func article(noun string) string {
	switch noun {
	case "bool":
		return "a boolean"
	case "array", "object":
		return "an " + noun
	}
	return "a " + noun
}

func badBody(what string) error { return core.Errorf(core.CodeBadRequest, "the body: %s", what) }
