package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tracing"
	"github.com/ropewalk/ropewalk/core/trust"
)

// Approvals decides which calls wait for a person. *trust.Approvals implements it.
type Approvals interface {
	// Needs reports whether calls of a tool wait. It is called once for each listing of a tool.
	Needs(t core.Tool) bool
	// Await returns nil when the call may be made, once.
	Await(ctx context.Context, c core.Caller, call trust.Call, progress func(message string)) error
}

// needsApproval reports whether the call of a tool that was found waits for a person. A call that goes on
// with an earlier one waits again: the answers that it brings are part of what is approved.
func (p *pending) needsApproval() bool {
	if p.n.approvals == nil {
		return false
	}
	if p.server == systemServer {
		tool, ok := p.n.systemTool(p.name)
		return ok && p.n.approvals.Needs(tool)
	}
	return p.tool != nil && p.tool.approval
}

// awaitApproval waits for a person, and records the call.
func (p *pending) awaitApproval(ctx context.Context) error {
	call := trust.Call{Arguments: p.call.Arguments, More: []json.RawMessage{p.call.InputResponses, p.call.RequestState}}
	if p.server == systemServer {
		call.Tool, _ = p.n.systemTool(p.name)
	} else {
		call.Tool = p.tool.Tool
	}
	waiting, span := tracing.StartWait(ctx, "an approval")
	err := p.n.approvals.Await(waiting, p.caller, call, p.progress())
	span.End(err)
	if err == nil {
		err = p.resolveAgain(ctx)
	}
	if refused := p.n.auditCall(ctx, p.caller, &p.call, err); refused != nil {
		return refused
	}
	return err
}

// resolveAgain makes sure that the tool is still the one that was approved.
func (p *pending) resolveAgain(ctx context.Context) error {
	if p.server == systemServer {
		return nil
	}
	approved := p.tool.Raw
	if err := p.resolve(ctx); err != nil {
		return err
	}
	if !bytes.Equal(p.tool.Raw, approved) {
		return core.Errorf(core.CodeApprovalRefused, "tool %q changed while the call waited for an approval; call it again", p.call.Name)
	}
	return nil
}

// systemTool returns one of the service's own tools.
func (n *Namespace) systemTool(name string) (core.Tool, bool) {
	for i, s := range n.system {
		if s.Name == name {
			return n.own[i].Tool, true
		}
	}
	return core.Tool{}, false
}

// progress reports to the client that the call waits, when the client asked for progress.
func (p *pending) progress() func(message string) {
	at, err := rawjson.Find(p.call.Meta, "progressToken")
	if err != nil || at.Empty() || p.call.Notify == nil {
		return func(string) {}
	}
	token, n := at.In(p.call.Meta), 0
	return func(message string) {
		n++ // progress must grow, and what the app reports later must not be less
		p.call.Notify(rpc.Notification{
			Method: "notifications/progress",
			Params: fmt.Appendf(nil, `{"progressToken":%s,"progress":%de-6,"message":%s}`, token, n, rawjson.Quote(message)),
		})
	}
}
