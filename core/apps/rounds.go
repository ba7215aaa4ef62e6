package apps

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/rpc"
)

const (
	maxRounds    = 10 // results of one call that ask for more
	maxQuestions = 32 // questions of one such result
)

// unfinished is a result of link.StatelessVersion that asks the client something first.
type unfinished struct {
	ResultType    string              `json:"resultType"`
	InputRequests map[string]question `json:"inputRequests"`
	RequestState  json.RawMessage     `json:"requestState"`
}

type question struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
}

// asksMore reads a result that asks for input. Few results mention it at all.
func asksMore(result json.RawMessage) (u unfinished, yes bool) {
	if !bytes.Contains(result, []byte(`"input_required"`)) {
		return u, false
	}
	err := json.Unmarshal(result, &u)
	return u, err == nil && u.ResultType == "input_required"
}

// rounds calls a stateless app for a client of the older revisions: what a result asks for is asked
// of the client, and the call repeated with the answers.
func (a *app) rounds(ctx context.Context, conn instance, r link.Request, k *caller) (json.RawMessage, error) {
	params := r.Params
	for range maxRounds {
		result, err := conn.Do(ctx, r)
		if err != nil {
			return nil, err
		}
		more, yes := asksMore(result)
		if !yes {
			return result, nil
		}
		answers, err := a.inputs(ctx, more, k)
		if err != nil {
			return nil, err
		}
		if r.Params, err = again(params, answers, more.RequestState); err != nil {
			return nil, err
		}
	}
	return nil, &rpc.Error{Code: internalError, Message: "the app asks for input without end"}
}

// inputs asks the client all that a result asks for, at the same time.
func (a *app) inputs(ctx context.Context, u unfinished, k *caller) (map[string]json.RawMessage, error) {
	if len(u.InputRequests) > maxQuestions {
		return nil, &rpc.Error{Code: internalError, Message: "the app asks for too much input at once"}
	}
	var (
		mu      sync.Mutex
		failure error
		asking  sync.WaitGroup
	)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(map[string]json.RawMessage, len(u.InputRequests))
	for name, q := range u.InputRequests {
		asking.Go(func() {
			answer, err := a.answer(ctx, link.Question{Method: q.Method, Params: q.Params}, k, []*caller{k})
			mu.Lock()
			defer mu.Unlock()
			if err != nil && failure == nil {
				failure = err
				cancel()
			}
			answers[name] = answer
		})
	}
	asking.Wait()
	return answers, failure
}

// again is the params of a call with the answers to what its last result asked for.
func again(params json.RawMessage, answers map[string]json.RawMessage, state json.RawMessage) (json.RawMessage, error) {
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
	raw, err := json.Marshal(answers)
	if err != nil {
		return nil, err
	}
	members["inputResponses"] = raw
	return json.Marshal(members)
}
