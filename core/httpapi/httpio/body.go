// This file reads JSON bodies. It checks the media type, UTF-8, nesting depth, duplicate and misspelled keys, and
// types, and words the errors. Package intake limits the size of bodies and reads their bytes.

package httpio

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/webguard"
)

// ReadBody decodes a JSON object into a T. It returns core.CodeUnsupportedMedia if the body is not declared as JSON,
// and a core.CodeBadRequest that names the field if a type is wrong. Fields that T does not have are ignored. It
// refuses bodies that two parsers could read differently: those with duplicate keys, a key that differs from one of T's
// only in case, data after the object, or invalid UTF-8.
//
// Memory use is linear in the size of the body, whatever its structure, because bodies are read before the client is
// known.
func ReadBody[T any](ctx *fasthttp.RequestCtx) (T, error) {
	raw := ctx.PostBody() // not decoded, because content encodings are refused
	if len(raw) > 0 {
		if err := checkMediaType(&ctx.Request.Header); err != nil {
			var none T
			return none, err
		}
	}
	return Decode[T](raw)
}

// Decode is ReadBody for the text of a JSON object.
func Decode[T any](raw []byte) (T, error) {
	var value T
	if len(raw) == 0 {
		return value, invalid("it is empty; send a JSON object")
	}
	if !utf8.Valid(raw) {
		return value, invalid("it is not UTF-8")
	}
	if err := checkSyntax(raw); err != nil {
		return value, err
	}
	if string(bytes.TrimSpace(raw)) == "null" {
		return value, invalid("it must be a JSON object, not null")
	}
	if err := checkFields(raw, "", reflect.TypeFor[T]()); err != nil {
		return value, err
	}
	err := json.Unmarshal(raw, &value)
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && strings.HasPrefix(e.Value, "number ") {
		var again T
		if raw, err = plainIntegers(raw, reflect.TypeFor[T]()); err == nil {
			err = json.Unmarshal(raw, &again)
		}
		value = again
	}
	if err != nil {
		return value, typeError(err)
	}
	dropNulls(reflect.ValueOf(&value).Elem())
	return value, nil
}

// dropNulls removes raw JSON fields that are null. encoding/json already treats null as absent in all other fields.
func dropNulls(value reflect.Value) {
	if value.Kind() != reflect.Struct {
		return
	}
	for about, field := range value.Fields() {
		if !about.IsExported() {
			continue
		}
		if raw, ok := reflect.TypeAssert[json.RawMessage](field); ok && string(raw) == "null" {
			field.SetZero()
		}
		dropNulls(field)
	}
}

func checkMediaType(h *fasthttp.RequestHeader) error {
	if !webguard.JSON(h) {
		return core.Errorf(core.CodeUnsupportedMedia, "the Content-Type must be application/json, in UTF-8")
	}
	if webguard.Encoded(h) {
		return core.Errorf(core.CodeUnsupportedMedia, "a Content-Encoding is not accepted")
	}
	return nil
}

// typeError rewords an error from encoding/json, which mentions Go types.
func typeError(err error) error {
	e, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return invalid("it cannot be read")
	}
	if e.Field == "" {
		return invalid("it must be a JSON object, not " + article(e.Value))
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
	default: // the other numeric kinds
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

func invalid(problem string) error {
	return core.Errorf(core.CodeBadRequest, "invalid body: %s", problem)
}

// plainIntegers removes the fraction and the exponent from whole numbers in a valid value that will be decoded into
// integers of t: 46.0 becomes 46. JSON Schema considers such numbers integers, and clients that only have
// floating-point numbers send them, but encoding/json refuses them.
func plainIntegers(value json.RawMessage, t reflect.Type) (json.RawMessage, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch kind := kindOf(value); {
	case kind == "number" && t.Kind() >= reflect.Int && t.Kind() <= reflect.Int64:
		return rawjson.PlainInteger(value), nil
	case kind == "array" && t.Kind() == reflect.Slice:
		return rawjson.EditElements(value, func(element json.RawMessage) (json.RawMessage, error) {
			return plainIntegers(element, t.Elem())
		})
	case kind == "object" && t.Kind() == reflect.Struct:
		known := fieldsOf(t)
		return rawjson.Edit(value, func(name string, member json.RawMessage) (json.RawMessage, error) {
			if f := known.find(name); f.of != nil {
				return plainIntegers(member, f.of)
			}
			return nil, nil
		})
	}
	return value, nil
}
