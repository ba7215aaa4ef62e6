package link

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/link/remote"
	"github.com/ropewalk/ropewalk/core/rawjson"
)

// parameterHeaders returns the headers that repeat arguments of a tools/call. There is none for an
// argument that is absent, null, or anything but a string, a boolean or an integer below 2^53.
func parameterHeaders(mirrors []core.Mirror, params json.RawMessage) http.Header {
	if len(mirrors) == 0 {
		return nil
	}
	arguments, err := findIn(params, "arguments")
	if err != nil {
		return nil
	}
	header := http.Header{}
	for _, m := range mirrors {
		if text, ok := primitive(valueAt(arguments.In(params), m.Path)); ok {
			header.Set(remote.HeaderParam+m.Header, remote.HeaderValue(text))
		}
	}
	return header
}

// valueAt returns the value at a path of members, nil when there is none.
func valueAt(value json.RawMessage, path []string) json.RawMessage {
	for _, name := range path {
		if len(value) == 0 || value[0] != '{' {
			return nil
		}
		inner, err := rawjson.Find(value, name)
		if err != nil {
			return nil
		}
		value = inner.In(value)
	}
	return value
}

// primitive returns the text of a JSON value that a header can repeat.
func primitive(value json.RawMessage) (string, bool) {
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
