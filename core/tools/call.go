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
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tracing"
)

// Call is one call of a tool.
type Call struct {
	Name       string                 // server__tool
	Arguments  json.RawMessage        // a JSON object; nil means {}
	Meta       json.RawMessage        // the request's _meta, passed on; nil when absent
	Agent      bool                   // a model's or an MCP client's call, which may publish data.changed
	CheckInput bool                   // check Arguments against the tool's schema first
	Notify     func(rpc.Notification) // receives the notifications of the call, in wire order; nil to drop them
	From

	// The answers to an earlier result that asked for input, and its state (2026-07-28); nil when absent.
	InputResponses, RequestState json.RawMessage

	// Wake, which holds one, receives without blocking each time Pending.Wait has something to take. nil
	// for a caller that only waits.
	Wake chan struct{}
}

// Pending is a call that was started. Its Wait must be called once.
type Pending interface {
	// Sent reports whether the call is on its way to its app. Call.Wake then receives; otherwise Wait
	// does all the work, and nothing has been done yet.
	Sent() bool
	// Answered reports whether Wait would return at once.
	Answered() bool
	// Wait returns the result of the call as the app wrote it, with the errors of Start.
	Wait(ctx context.Context) (json.RawMessage, error)
	// Failed reports, after Wait, whether the result says that the tool failed.
	Failed() bool
}

// Call starts a call and waits for its result.
func (n *Namespace) Call(ctx context.Context, c core.Caller, call Call) (json.RawMessage, error) {
	p, err := n.Start(ctx, c, call)
	if err != nil {
		return nil, err
	}
	return p.Wait(ctx)
}

// Start starts a call of a tool in c's workspace. It does not wait: a call that cannot be sent at
// once is made by the pending call's Wait.
//
// The checks, in this order: core.CodeToolNotFound, CodeToolHeld, CodeFeatureDisabled, CodeForbidden,
// CodeInvalidInput. A JSON-RPC error of the app comes back as *rpc.Error; a tool's own failure is a
// result whose isError is true, not an error.
func (n *Namespace) Start(ctx context.Context, c core.Caller, call Call) (Pending, error) {
	p := &pending{n: n, caller: c, call: call}
	if err := p.begin(ctx); err != nil {
		p.measure(err)
		return nil, err
	}
	return p, nil
}

// begin checks the call, and starts that of the app if nothing is to be waited for.
func (p *pending) begin(ctx context.Context) error {
	err := p.resolve(ctx)
	if err == nil && p.needsApproval() {
		return nil // recorded when it is made
	}
	if refused := p.n.auditCall(ctx, p.caller, &p.call, err); refused != nil {
		return refused
	}
	switch {
	case core.CodeOf(err) == core.CodeToolNotFound: // an app that is starting may have it
		return nil
	case err != nil:
		return err
	case p.server == systemServer || p.n.raisesLogLevel(p.caller, &p.call):
		return nil
	}
	return p.start(ctx)
}

// pending implements Pending.
type pending struct {
	n       *Namespace
	caller  core.Caller
	call    Call
	started apps.PendingCall // nil until the app's part was started

	// The result of resolve.
	server string
	name   string    // the tool's own
	tool   *callable // of an app
	uris   *resourceURIs

	result callResult // of the result that Wait returned
}

// Sent implements Pending.
func (p *pending) Sent() bool { return p.started != nil && p.started.Sent() }

// Answered implements Pending.
func (p *pending) Answered() bool { return p.started != nil && p.started.Answered() }

// Failed implements Pending.
func (p *pending) Failed() bool { return p.result.isError }

// start starts the call of the app. Nothing may be left to wait for.
func (p *pending) start(ctx context.Context) (err error) {
	p.started, err = p.n.apps.StartCall(ctx, p.caller.Workspace.ID, p.server, p.request())
	if err == nil { // the request has copies of these, which may be large
		p.call.Arguments, p.call.Meta, p.call.InputResponses, p.call.RequestState = nil, nil, nil, nil
	}
	return err
}

// Wait implements Pending.
func (p *pending) Wait(ctx context.Context) (json.RawMessage, error) {
	result, err := p.wait(ctx)
	p.measure(err)
	return result, err
}

// measure records the outcome of the call. A name that is no tool's is not recorded: callers may choose any.
func (p *pending) measure(err error) {
	if p.n.metrics == nil {
		return
	}
	app, tool := p.server, p.name
	if p.tool == nil && (p.server != systemServer || core.CodeOf(err) == core.CodeToolNotFound) {
		app, tool = "", ""
	}
	p.n.metrics.ToolCall(app, tool, p.result.isError, err)
}

func (p *pending) wait(ctx context.Context) (json.RawMessage, error) {
	if p.tool == nil && p.server != systemServer {
		if err := p.await(ctx); err != nil {
			return nil, err
		}
	}
	if p.needsApproval() {
		if err := p.awaitApproval(ctx); err != nil {
			return nil, err
		}
	}
	if p.server == systemServer {
		result, err := p.n.callSystem(ctx, p.caller, p.name, p.call)
		p.result = readResult(result)
		return result, err
	}
	if p.started == nil {
		p.n.raiseLogLevel(ctx, p.caller, p.call.From, p.call.Meta)
		if err := p.start(ctx); err != nil {
			return nil, err
		}
	}
	return p.finish(p.started.Wait(ctx))
}

// await waits for an app whose tools are not known yet. The tool is looked up again also when there is
// nothing to wait for: the app may have begun to run since the first time.
func (p *pending) await(ctx context.Context) error {
	if !strings.Contains(p.call.Name, "__") {
		return notFound(p.call.Name)
	}
	waiting, span := tracing.StartWait(ctx, "the app")
	err := p.n.apps.AwaitOffer(waiting, p.caller.Workspace.ID, p.server)
	span.End(err)
	if err != nil {
		return err
	}
	return p.resolve(ctx)
}

// resolve finds the tool of a call and checks the call.
func (p *pending) resolve(ctx context.Context) (err error) {
	p.server, p.name, _ = strings.Cut(p.call.Name, "__")
	if len(p.call.Arguments) == 0 || bytes.Equal(p.call.Arguments, []byte("null")) {
		p.call.Arguments = json.RawMessage("{}")
	}
	if p.server == systemServer {
		return nil
	}
	r := p.n.lists(p.caller.Workspace.ID, p.call.From)
	tool := r.tool(p.call.Name, p.call.Session)
	if reason, held := r.held[p.call.Name]; held && tool == nil {
		return core.Errorf(core.CodeToolHeld, "%s", reason)
	}
	if tool == nil {
		return notFound(p.call.Name)
	}
	p.server, p.name = tool.Server, tool.Name
	if p.call.CheckInput {
		if err := p.n.validator.CheckArguments(ctx, tool.Tool, p.call.Arguments); err != nil {
			return err
		}
	}
	if len(p.call.InputResponses) > 0 && !p.caller.MayNameRoots() {
		p.call.InputResponses = withoutRoots(p.call.InputResponses)
	}
	p.tool, p.uris = tool, r.uris
	return nil
}

// request returns the call of the app.
func (p *pending) request() interact.Call {
	call := &p.call
	r := p.n.request(p.caller, "tools/call", params(p.tool.quoted, call), call.Meta, call.Notify, call.From)
	r.Target, r.Mirrors, r.Wake, r.AsTask = p.tool.Name, p.tool.Mirrors, call.Wake, p.tool.TaskOnly
	return r
}

// finish returns an app's result as the caller sees it.
func (p *pending) finish(result json.RawMessage, err error) (json.RawMessage, error) {
	if err != nil {
		return nil, err
	}
	p.result = readResult(result)
	if p.result.linked && (p.n.takeLinks(p.caller, p.call.From, p.uris, p.server, result) || p.uris.mentions(result)) {
		result = relinkedContent(p.uris, p.server, result)
	}
	if p.call.Agent && !p.tool.ReadOnly && !p.result.isError && !p.result.needsInput {
		p.n.events.Publish(core.Event{Name: core.EventDataChanged, Workspace: p.caller.Workspace.ID, Data: core.DataChanged{
			Server: p.server, Tool: p.name, Timestamp: core.Stamp(time.Now()),
		}})
	}
	return result, nil
}

func (n *Namespace) callSystem(ctx context.Context, c core.Caller, name string, call Call) (json.RawMessage, error) {
	for _, s := range n.system {
		if s.Name != name {
			continue
		}
		if err := n.allowed(s, c); err != nil {
			return nil, err
		}
		if err := n.validator.CheckArguments(ctx, s.tool(), call.Arguments); err != nil {
			return nil, err
		}
		return s.run(ctx, c, call.Arguments)
	}
	return nil, notFound(call.Name)
}

func notFound(name string) error {
	return core.Errorf(core.CodeToolNotFound, "there is no tool %q in this workspace", name)
}
