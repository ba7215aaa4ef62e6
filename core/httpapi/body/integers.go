package body

import (
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/core/rawjson"
)

// maxExact is the largest magnitude up to which a float64 holds every whole number.
const maxExact = 1 << 53

// plainIntegers writes the whole numbers of a valid value that will be decoded into integers of t without
// a fraction or an exponent: 46.0 as 46. They are integers for JSON Schema, and clients whose numbers are
// all floats send them, but encoding/json refuses them.
func plainIntegers(value json.RawMessage, t reflect.Type) (json.RawMessage, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch kind := kindOf(value); {
	case kind == "number" && t.Kind() >= reflect.Int && t.Kind() <= reflect.Int64:
		return plainInteger(value), nil
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

func plainInteger(number json.RawMessage) json.RawMessage {
	text := strings.TrimSpace(string(number))
	if !strings.ContainsAny(text, ".eE") {
		return number
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > maxExact {
		return number
	}
	return json.RawMessage(strconv.FormatInt(int64(f), 10))
}
