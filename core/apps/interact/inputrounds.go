package interact

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/rpc"
)

const (
	maxRounds   = 10 // how many times one call may ask for input
	maxRequests = 32 // input requests in one result
)

// inputRequired is a link.StatelessVersion result that asks the client for input.
type inputRequired struct {
	ResultType    string                  `json:"resultType"`
	InputRequests map[string]inputRequest `json:"inputRequests"`
	RequestState  json.RawMessage         `json:"requestState"`
}

type inputRequest struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
}

// parseInputRequired reads a result that asks for input. The search for the word avoids parsing most results.
func parseInputRequired(result json.RawMessage) (r inputRequired, ok bool) {
	if !bytes.Contains(result, []byte(`"input_required"`)) {
		return r, false
	}
	err := json.Unmarshal(result, &r)
	return r, err == nil && r.ResultType == "input_required"
}

// sendWithInput calls a stateless app on behalf of a client with an older revision. When a result asks for input, it
// asks the client and repeats the request with the answers.
func (c *Call) sendWithInput(in instance.Instance) (json.RawMessage, error) {
	r := c.request()
	if c.Asker != nil && c.Client != nil {
		r.Capabilities = c.Client.capabilities
	}
	for range maxRounds {
		result, err := in.Call(c.ctx, r)
		if err != nil {
			return nil, err
		}
		required, ok := parseInputRequired(result)
		if !ok {
			return result, nil
		}
		responses, err := c.requestInput(required)
		if err != nil {
			return nil, err
		}
		if r.Params, err = withResponses(c.Params, responses, required.RequestState); err != nil {
			return nil, err
		}
	}
	return nil, &rpc.Error{Code: rpc.CodeInternalError, Message: "the app keeps asking for input"}
}

// requestInput asks the client concurrently for all the input that a result requires. The first error cancels the
// remaining requests.
func (c *Call) requestInput(required inputRequired) (map[string]json.RawMessage, error) {
	if len(required.InputRequests) > maxRequests {
		return nil, &rpc.Error{Code: rpc.CodeInternalError, Message: "the app asked for too much input at once"}
	}
	var (
		mu      sync.Mutex
		failure error
		asking  sync.WaitGroup
	)
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	responses := make(map[string]json.RawMessage, len(required.InputRequests))
	for name, q := range required.InputRequests {
		asking.Go(func() {
			response, err := c.Answer(ctx, rpc.Question{Method: q.Method, Params: q.Params}, []link.Caller{c})
			mu.Lock()
			defer mu.Unlock()
			if err != nil && failure == nil {
				failure = err
				cancel()
			}
			responses[name] = response
		})
	}
	asking.Wait()
	return responses, failure
}

// withResponses returns the params of a call with the input and the requestState for its next round.
func withResponses(params json.RawMessage, responses map[string]json.RawMessage, state json.RawMessage) (json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	if len(params) > 0 {
		if err := json.Unmarshal(params, &members); err != nil {
			return nil, core.Wrap(core.CodeBadRequest, err, link.ErrParams.Error())
		}
	}
	delete(members, "requestState")
	if len(state) > 0 {
		members["requestState"] = state
	}
	raw, err := json.Marshal(responses)
	if err != nil {
		return nil, err
	}
	members["inputResponses"] = raw
	return json.Marshal(members)
}
