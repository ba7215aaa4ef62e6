package tools

import (
	"bytes"
	"encoding/json"
	"errors"
)

// renamed returns the JSON object raw with its name set to name and every other byte kept.
func renamed(raw json.RawMessage, name string) (json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.New("not a JSON object")
	}
	quoted, err := json.Marshal(name)
	if err != nil {
		return nil, err
	}
	out, copied := make([]byte, 0, len(raw)+len(name)), 0
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		if key != "name" {
			continue
		}
		end := int(dec.InputOffset())
		out = append(out, raw[copied:end-len(value)]...)
		out = append(out, quoted...)
		copied = end
	}
	if copied == 0 {
		return nil, errors.New("it has no name")
	}
	return append(out, raw[copied:]...), nil
}
