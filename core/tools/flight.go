package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps"
	"github.com/ropewalk/ropewalk/core/apps/interact"
)

// Flight is a call that is on its way to its app. Wait must be called, once: it is the second half of
// Call, with its errors. Answered tells whether it has nothing to wait for any more.
type Flight interface {
	Answered() bool
	Wait(ctx context.Context) (json.RawMessage, error)
}

// Send is the first half of Call for a call that needs to wait for nobody but its app. Every other
// call gets no flight, and nothing has been done about it. Wake, which holds one, receives without
// being waited for each time something has come for Wait to take.
func (n *Namespace) Send(ctx context.Context, c core.Caller, call Call, wake chan struct{}) (Flight, error) {
	d, err := n.dial(c, &call)
	if core.CodeOf(err) == core.CodeToolNotFound { // it may have yet to come
		return nil, nil
	}
	if err != nil || d.server == systemServer {
		return nil, err
	}
	f, err := n.apps.Send(ctx, c.Workspace.ID, d.server, d.request(c, &call), wake)
	if err != nil || f == nil {
		return nil, err
	}
	return &flight{dialled: d, Pending: f}, nil
}

type flight struct {
	dialled
	*apps.Pending
}

// Wait implements Flight.
func (f *flight) Wait(ctx context.Context) (json.RawMessage, error) {
	return f.finish(f.Pending.Wait(ctx))
}

// dialled is a call of which it is clear whom it is for.
type dialled struct {
	n         *Namespace
	workspace string
	server    string
	name      string    // the tool's own
	tool      *callable // the rest is of an app's tool
	places    *places
	agent     bool
}

// reach is dial, and waits for an app that has yet to tell which tools it has.
func (n *Namespace) reach(ctx context.Context, c core.Caller, call *Call) (dialled, error) {
	d, err := n.dial(c, call)
	if core.CodeOf(err) != core.CodeToolNotFound {
		return d, err
	}
	came, late := n.apps.AwaitOffer(ctx, c.Workspace.ID, d.server)
	switch {
	case late != nil:
		return d, late
	case came:
		return n.dial(c, call)
	}
	return d, err
}

// dial finds out whom a call is for, and checks it.
func (n *Namespace) dial(c core.Caller, call *Call) (d dialled, err error) {
	d = dialled{n: n, workspace: c.Workspace.ID, agent: call.Agent}
	var ok bool
	if d.server, d.name, ok = strings.Cut(call.Name, "__"); !ok {
		return d, notFound(call.Name)
	}
	if len(call.Arguments) == 0 || bytes.Equal(call.Arguments, []byte("null")) {
		call.Arguments = json.RawMessage("{}")
	}
	if d.server == systemServer {
		return d, nil
	}
	r := n.render(c.Workspace.ID)
	d.places = r.places
	if d.tool = r.byName[call.Name]; d.tool == nil {
		return d, notFound(call.Name)
	}
	if call.CheckInput {
		if err := n.inputs.check(d.tool.Tool, call.Arguments); err != nil {
			return d, err
		}
	}
	if len(call.InputResponses) > 0 && !c.MayNameRoots() {
		call.InputResponses = withoutRoots(call.InputResponses)
	}
	return d, nil
}

// request is what the app is asked.
func (d *dialled) request(c core.Caller, call *Call) interact.Call {
	r := d.n.request(c, "tools/call", params(d.tool.quoted, call), call.Meta, call.Notify, call.From)
	r.Mirrors = d.tool.Mirrors
	return r
}

// finish turns an app's result into the caller's.
func (d *dialled) finish(result json.RawMessage, err error) (json.RawMessage, error) {
	if err != nil {
		return nil, err
	}
	if d.places.mentions(result) {
		result = relinkedContent(d.places, d.server, result)
	}
	if d.agent && !d.tool.ReadOnly && !failed(result) {
		d.n.events.Publish(core.Event{Name: core.EventDataChanged, Workspace: d.workspace, Data: core.DataChanged{
			Server: d.server, Tool: d.name, Timestamp: core.Timestamp(time.Now()),
		}})
	}
	return result, nil
}
