package link

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rawjson"
)

// The headers in which requests of StatelessVersion repeat what their body says (basic/transports,
// request metadata). The SDK sets the first two.
const (
	headerMethod = "Mcp-Method"
	headerName   = "Mcp-Name"
	headerParam  = "Mcp-Param-"
)

type headerKey struct{}

// withHeader is ctx for a message that is sent with more headers than the SDK gives it.
func withHeader(ctx context.Context, header http.Header) context.Context {
	if len(header) == 0 {
		return ctx
	}
	return context.WithValue(ctx, headerKey{}, header)
}

// repeat completes the headers of a message on its way out: those that go with it, and the name in a
// form that a header can hold.
func repeat(ctx context.Context, out http.Header) {
	if more, ok := ctx.Value(headerKey{}).(http.Header); ok {
		for name, values := range more {
			out[name] = values
		}
	}
	if name := out.Get(headerName); name != "" {
		out.Set(headerName, headerSafe(name))
	}
}

// mirrored is the headers that repeat arguments of a tools/call. What is absent, null, or no string,
// boolean or integer that every reader takes for the same, has none.
func mirrored(mirrors []core.Mirror, params json.RawMessage) http.Header {
	if len(mirrors) == 0 {
		return nil
	}
	arguments, err := findIn(params, "arguments")
	if err != nil {
		return nil
	}
	header := http.Header{}
	for _, m := range mirrors {
		if text, ok := primitive(at(arguments.In(params), m.Path)); ok {
			header.Set(headerParam+m.Header, headerSafe(text))
		}
	}
	return header
}

// at is the value that a path of members leads to, nil for none.
func at(value json.RawMessage, path []string) json.RawMessage {
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

// primitive is a JSON value as a header says it.
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

// headerSafe is a value as it is, if a header can hold it, and in base64 otherwise.
func headerSafe(value string) string {
	wrapped := strings.HasPrefix(value, "=?base64?") && strings.HasSuffix(value, "?=")
	strange := strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' })
	if value != "" && !wrapped && !strange && strings.TrimSpace(value) == value { // many take an empty header for none
		return value
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(value)) + "?="
}
