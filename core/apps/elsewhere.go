package apps

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// A client of link.StatelessVersion goes on with a parked call on any server of a deployment: the one
// it comes to asks the one that has the call, which the requestState names.

// resumption is the answer of a client, on its way to the server that has its call.
type resumption struct {
	Workspace string          `json:"workspace"`
	App       string          `json:"app"`
	Owner     string          `json:"owner"`
	Method    string          `json:"method"`
	Params    json.RawMessage `json:"params"`
}

// outcome is what became of the call.
type outcome struct {
	Result json.RawMessage `json:"result,omitempty"`
	RPC    *rpc.Error      `json:"rpc,omitempty"`
	Code   core.Code       `json:"code,omitempty"`
	Text   string          `json:"text,omitempty"`
}

// errUnknownState is said of calls that are not parked, or not any more, or not the caller's.
func errUnknownState() error {
	return &rpc.Error{Code: invalidParams, Message: "requestState is not known, or no longer: make the call anew"}
}

// stateOn begins the requestState of the calls that a server parks.
func stateOn(server string) string {
	if server == "" {
		return parkedState
	}
	return parkedState + server + "."
}

// comeBackElsewhere goes on with a call that another server has parked.
func (a *app) comeBackElsewhere(ctx context.Context, state string, c Call) (json.RawMessage, error) {
	d := a.manager.o.Cluster
	server, _, named := strings.Cut(strings.TrimPrefix(state, parkedState), ".")
	if d == nil || !named || server == d.ServerID() {
		return nil, errUnknownState()
	}
	question, err := json.Marshal(resumption{a.key.workspace, a.key.name, c.Owner, c.Method, c.Params})
	if err != nil {
		return nil, err
	}
	answer, err := d.RequestPeer(ctx, server, question)
	if core.CodeOf(err) == core.CodeNotFound {
		return nil, errUnknownState()
	}
	if err != nil {
		return nil, err
	}
	var said outcome
	if err := json.Unmarshal(answer, &said); err != nil {
		return nil, err
	}
	switch {
	case said.RPC != nil:
		return nil, said.RPC
	case said.Code != "":
		return nil, core.Errorf(said.Code, "%s", said.Text)
	}
	return said.Result, nil
}

// resume goes on with a call that is parked here, for a client that came to another server.
func (y *Manager) resume(ctx context.Context, question json.RawMessage) json.RawMessage {
	var r resumption
	var said outcome
	var err error
	if err = json.Unmarshal(question, &r); err == nil {
		said.Result, err = y.resumeParked(ctx, r)
	}
	if failure, ok := errors.AsType[*rpc.Error](err); ok {
		said.RPC = failure
	} else if err != nil {
		said.Code, said.Text = core.CodeOf(err), message(err)
	}
	answer, err := json.Marshal(said)
	if err != nil {
		return nil
	}
	return answer
}

func (y *Manager) resumeParked(ctx context.Context, r resumption) (json.RawMessage, error) {
	a, err := y.find(r.Workspace, r.App)
	if err != nil {
		return nil, err
	}
	result, resumed, err := a.comeBack(ctx, Call{Method: r.Method, Params: r.Params, Owner: r.Owner})
	if !resumed {
		return nil, errUnknownState()
	}
	return result, err
}
