package interact

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// Errors of apps that say what the user or the client must do first.
const (
	codeURLElicitationRequired = -32042 // 2025-11-25: the user must visit the URLs in its data, then the call is made again
	codeMissingCapability      = -32021 // link.StatelessVersion: the client did not declare a capability that is needed
)

// urlElicitationResult turns the error by which an app sends the user to URLs into the result that
// asks for it in link.StatelessVersion, which has no such error. Other errors are returned as they are.
func (f *InFlight) urlElicitationResult(err error) (json.RawMessage, error) {
	rpcErr, ok := errors.AsType[*rpc.Error](err)
	if !ok || rpcErr.Code != codeURLElicitationRequired {
		return nil, err
	}
	var data struct {
		Elicitations []json.RawMessage `json:"elicitations"`
	}
	if json.Unmarshal(rpcErr.Data, &data) != nil || len(data.Elicitations) == 0 || len(data.Elicitations) > maxRequests {
		return nil, err
	}
	if !f.canAsk(abilityURL) {
		return nil, &rpc.Error{Code: codeMissingCapability, Message: rpcErr.Message, Data: json.RawMessage(`{"requiredCapabilities":{"elicitation":{"url":{}}}}`)}
	}
	requests := make(map[string]inputRequest, len(data.Elicitations))
	for i, params := range data.Elicitations {
		requests[fmt.Sprintf("page%d", i+1)] = inputRequest{instance.MethodElicit, params}
	}
	return json.Marshal(map[string]any{"resultType": "input_required", "inputRequests": requests})
}
