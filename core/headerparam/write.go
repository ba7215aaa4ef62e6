package headerparam

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rawjson"
)

// Header returns the headers that repeat arguments of a tools/call. There is none for an
// argument that is absent, null, or anything but a string, a boolean or an integer below 2^53.
func Header(mirrors []core.Mirror, params json.RawMessage) http.Header {
	if len(mirrors) == 0 {
		return nil
	}
	arguments := member(params, "arguments")
	header := http.Header{}
	for _, m := range mirrors {
		if text, ok := headerText(valueAt(arguments, m.Path)); ok {
			header.Set(Prefix+m.Header, Encode(text))
		}
	}
	return header
}

// valueAt returns the value at a path of members, nil when there is none.
func valueAt(value json.RawMessage, path []string) json.RawMessage {
	for _, name := range path {
		value = member(value, name)
	}
	return value
}

// member returns a member of an object, nil when there is none.
func member(object json.RawMessage, name string) json.RawMessage {
	if len(object) == 0 || object[0] != '{' {
		return nil
	}
	found, err := rawjson.Find(object, name)
	if err != nil {
		return nil
	}
	return found.In(object)
}

// headerText returns the text of a JSON value that a header can repeat.
func headerText(value json.RawMessage) (string, bool) {
	var decoded any
	if json.Unmarshal(value, &decoded) != nil {
		return "", false
	}
	switch v := decoded.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), v == math.Trunc(v) && math.Abs(v) < 1<<53
	}
	return "", false
}
