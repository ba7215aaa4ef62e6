package tools

import (
	"encoding/json"
	"strings"

	"github.com/ropewalk/ropewalk/core/rawjson"
)

// capabilitiesWithoutRoots returns client capabilities without roots, for a caller who may not name any.
func capabilitiesWithoutRoots(capabilities json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(capabilities, &members) != nil || members["roots"] == nil {
		return capabilities
	}
	delete(members, "roots")
	raw, _ := json.Marshal(members) // raw messages that were read just now always marshal
	return raw
}

// withoutRoots returns the answers to a result that asked for input, with empty roots where the client sent
// some. Invalid answers stay as they are.
func withoutRoots(responses json.RawMessage) json.RawMessage {
	return orUnchanged(responses, func() (json.RawMessage, error) {
		return rawjson.Edit(responses, func(_ string, answer json.RawMessage) (json.RawMessage, error) {
			var members map[string]json.RawMessage
			_ = json.Unmarshal(answer, &members) // only an object has roots
			for name := range members {
				if strings.EqualFold(name, "roots") {
					return json.RawMessage(`{"roots":[]}`), nil
				}
			}
			return nil, nil
		})
	})
}
