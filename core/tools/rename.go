package tools

import (
	"bytes"
	"encoding/json"
	"errors"
)

// renamed returns the JSON object raw with its member set to value, which must be there, and every
// other byte kept.
func renamed(raw json.RawMessage, member, value string) (json.RawMessage, error) {
	quoted, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	found := false
	out, err := edited(raw, func(name string, _ json.RawMessage) (json.RawMessage, error) {
		if name != member {
			return nil, nil
		}
		found = true
		return quoted, nil
	})
	if err == nil && !found {
		err = errors.New("it has no " + member)
	}
	return out, err
}

// edited returns the JSON object raw with the values that edit gives for its members, nil to leave
// one as it is, and every other byte kept.
func edited(raw json.RawMessage, edit func(name string, value json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.New("not a JSON object")
	}
	var out []byte
	copied := 0
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, _ := key.(string) // the key of an object always is one
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		other, err := edit(name, value)
		if err != nil {
			return nil, err
		}
		if other == nil {
			continue
		}
		end := int(dec.InputOffset())
		out = append(append(out, raw[copied:end-len(value)]...), other...)
		copied = end
	}
	if copied == 0 {
		return raw, nil
	}
	return append(out, raw[copied:]...), nil
}

// editedMember applies edit to the named member of an object, if that is there.
func editedMember(raw json.RawMessage, member string, edit func(json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error) {
	return edited(raw, func(name string, value json.RawMessage) (json.RawMessage, error) {
		if name != member {
			return nil, nil
		}
		return edit(value)
	})
}

// editedElements applies edit to each element of an array.
func editedElements(raw json.RawMessage, edit func(json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error) {
	var elements []json.RawMessage
	if err := json.Unmarshal(raw, &elements); err != nil {
		return nil, err
	}
	out := []byte{'['}
	for i, e := range elements {
		other, err := edit(e)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, other...)
	}
	return append(out, ']'), nil
}
