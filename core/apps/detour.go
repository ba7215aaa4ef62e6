package apps

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ropewalk/ropewalk/core/rpc"
)

// What an app answers instead of a result, when somebody must first do something elsewhere.
const (
	codeVisitFirst        = -32042 // 2025-11-25: the user must visit the pages in its data, then the call be made anew
	codeMissingCapability = -32021 // link.StatelessVersion: the client did not say that it can what is needed
)

// detour turns an app's error that sends the user to pages into the result by which
// link.StatelessVersion asks for that: it has no such error. The client makes the call anew after it.
func (k *caller) detour(err error) (json.RawMessage, error) {
	failure, ok := errors.AsType[*rpc.Error](err)
	if !ok || failure.Code != codeVisitFirst {
		return nil, err
	}
	var said struct {
		Pages []json.RawMessage `json:"elicitations"`
	}
	if json.Unmarshal(failure.Data, &said) != nil || len(said.Pages) == 0 || len(said.Pages) > maxQuestions {
		return nil, err
	}
	if !k.can(abilityURL) {
		return nil, &rpc.Error{Code: codeMissingCapability, Message: failure.Message, Data: json.RawMessage(`{"requiredCapabilities":{"elicitation":{"url":{}}}}`)}
	}
	requests := make(map[string]question, len(said.Pages))
	for i, page := range said.Pages {
		requests[fmt.Sprintf("page%d", i+1)] = question{methodElicit, page}
	}
	return json.Marshal(map[string]any{"resultType": "input_required", "inputRequests": requests})
}
