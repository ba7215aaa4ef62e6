package tools

import (
	"bytes"
	"encoding/json"

	"github.com/ropewalk/ropewalk/core/rawjson"
)

// params builds the params of tools/call without decoding the arguments. quoted is the tool's own name as
// JSON.
func params(quoted []byte, call *Call) json.RawMessage {
	p := make([]byte, 0, len(quoted)+len(call.Arguments)+len(call.Meta)+len(call.InputResponses)+len(call.RequestState)+80)
	p = append(append(p, `{"name":`...), quoted...)
	p = append(append(p, `,"arguments":`...), call.Arguments...)
	for _, m := range []struct {
		name  string
		value json.RawMessage
	}{{"_meta", call.Meta}, {"inputResponses", call.InputResponses}, {"requestState", call.RequestState}} {
		if len(m.value) > 0 {
			p = append(append(append(p, `,"`...), m.name...), `":`...)
			p = append(p, m.value...)
		}
	}
	return append(p, '}')
}

// failed reports whether a CallToolResult is an error or asks for input. Only results that mention one of
// them are decoded.
func failed(result json.RawMessage) bool {
	if !bytes.Contains(result, []byte(`"isError"`)) && !bytes.Contains(result, []byte(`"input_required"`)) {
		return false
	}
	var r struct {
		IsError    bool   `json:"isError"`
		ResultType string `json:"resultType"`
	}
	return json.Unmarshal(result, &r) == nil && (r.IsError || r.ResultType == "input_required")
}

// IsError reports whether a result says that the tool failed. A result is decoded only if it may.
func IsError(result json.RawMessage) bool {
	name := []byte(`"isError"`)
	for rest := []byte(result); ; {
		at := bytes.Index(rest, name)
		if at < 0 {
			return false
		}
		rest = bytes.TrimLeft(rest[at+len(name):], " \t\r\n:")
		if bytes.HasPrefix(rest, []byte("true")) {
			value, err := rawjson.Find(result, "isError")
			return err == nil && string(value.In(result)) == "true"
		}
	}
}
