package tools

import "encoding/json"

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
