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
	if err := json.Unmarshal(body, &json.RawMessage{}); err != nil { // also bounds the nesting
		return value, badBody("it is not JSON: " + strings.TrimPrefix(err.Error(), "json: "))
	}
	if string(bytes.TrimSpace(body)) == "null" {
		return value, badBody("it must be a JSON object, not null")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := checkKeys(d, "", reflect.TypeFor[T]()); err != nil {
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

// checkKeys walks the value that d is in front of, which is known to be JSON. Structs of t say
// which names are known, and its texts must be strings; below anything else only duplicates count.
func checkKeys(d *json.Decoder, path string, t reflect.Type) error {
	token, err := d.Token()
	if err != nil {
		return badBody("it is not JSON")
	}
	if got := kindOf(token); t != nil && t.Kind() == reflect.String && got != "string" && got != "null" {
		return core.Errorf(core.CodeBadRequest, "%s must be a string, not %s", path, article(got)) // encoding/json does not name a map's key
	}
	switch token {
	case json.Delim('['):
		var of reflect.Type
		if t != nil && t.Kind() == reflect.Slice {
			of = t.Elem()
		}
		for d.More() {
			if err := checkKeys(d, path+"[]", of); err != nil {
				return err
			}
		}
	case json.Delim('{'):
		known := fieldsOf(t)
		seen := make(map[string]bool)
		for d.More() {
			key, _ := d.Token() // a key: the JSON is valid
			name, _ := key.(string)
			at := strings.TrimPrefix(path+"."+name, ".")
			if seen[name] {
				return badBody(at + " is given more than once")
			}
			seen[name] = true
			field := known.named(name)
			if field.name != "" && field.name != name {
				return badBody(at + " is not a field; did you mean " + field.name + "?")
			}
			of := field.of
			if t != nil && t.Kind() == reflect.Map {
				of = t.Elem()
			}
			if err := checkKeys(d, at, of); err != nil {
				return err
			}
		}
	default:
		return nil
	}
	_, err = d.Token() // the closing delimiter
	return err
}

// kindOf is what encoding/json calls the kind of a value that begins with token.
func kindOf(token json.Token) string {
	switch token := token.(type) {
	case json.Delim:
		if token == '[' {
			return "array"
		}
		return "object"
	case string:
		return "string"
	case bool:
		return "bool"
	case nil:
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
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct {
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
