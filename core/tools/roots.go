package tools

import (
	"encoding/json"
	"strings"

	"github.com/ropewalk/ropewalk/core/rawjson"
)

// rootless is client capabilities without roots, for a caller who may not name any.
func rootless(capabilities json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(capabilities, &members) != nil || members["roots"] == nil {
		return capabilities
	}
	delete(members, "roots")
	raw, _ := json.Marshal(members) // raw messages that were read just now always marshal
	return raw
}

// withoutRoots is the answers to a result that asked for input, with no roots where a client gave
// some. Answers that are no answers are the app's to judge.
func withoutRoots(responses json.RawMessage) json.RawMessage {
	return orAsItIs(responses, func() (json.RawMessage, error) {
		return rawjson.Edit(responses, func(_ string, answer json.RawMessage) (json.RawMessage, error) {
			var members map[string]json.RawMessage
			_ = json.Unmarshal(answer, &members) // an answer that is no object has no roots
			for name := range members {
				if strings.EqualFold(name, "roots") {
					return json.RawMessage(`{"roots":[]}`), nil
				}
			}
			return nil, nil
		})
	})
}
