package mcphttp

import (
	"encoding/json"
)

// members are members to put into a JSON object, in order.
type members []struct{ name, value string }

func (m *members) add(name, value string) {
	*m = append(*m, struct{ name, value string }{name, value})
}

func (m members) has(name []byte) bool {
	for _, add := range m {
		if string(name) == `"`+add.name+`"` {
			return true
		}
	}
	return false
}

// into returns an object that object has passed with the members in it, in place of those of the
// same names. Every other byte is kept. Names hold nothing that JSON would escape.
func (m members) into(text json.RawMessage) json.RawMessage {
	if len(m) == 0 {
		return text
	}
	out := make([]byte, 0, len(text)+64)
	out = append(out, '{')
	for i := skipSpace(text, 1); text[i] != '}'; {
		start, end := i, skipValue(text, i)
		key := text[start:end]
		end = skipValue(text, skipSpace(text, skipSpace(text, end)+1))
		if !m.has(key) {
			out = append(append(out, text[start:end]...), ',')
		}
		if i = skipSpace(text, end); text[i] == ',' {
			i = skipSpace(text, i+1)
		}
	}
	for _, add := range m {
		out = append(append(append(out, '"'), add.name...), `":`...)
		out = append(append(out, add.value...), ',')
	}
	out[len(out)-1] = '}'
	return out
}
