package tools

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tracing"
	"github.com/ropewalk/ropewalk/core/trust"
)

// Call is one tool call.
type Call struct {
	Name       string                 // server__tool
	ID         string                 // the model's id for the call, for the span; "" for none
	Arguments  json.RawMessage        // a JSON object; nil means {}
	Meta       json.RawMessage        // the request's _meta, passed on; nil if absent
	Agent      bool                   // the call is from a model or an MCP client, and may publish data.changed
	Account    string                 // the account's name; "" for the one in Name, the one chosen in the conversation, or the default
	CheckInput bool                   // check Arguments against the tool's schema first
	Notify     func(rpc.Notification) // receives the notifications of the call, in wire order; nil drops them
	From

	// Chose, unless nil, is called with the tool's full name and the account's name ("" for none) before the call waits
	// for an approval.
	Chose func(tool, account string)

	// The answers to an earlier result that asked for input, and its state (MCP 2026-07-28); nil if absent.
	InputResponses, RequestState json.RawMessage

	// Set when the call is made.
	n       *Namespace
	caller  core.Caller
	task    *taskRun                       // the task that the call is or may become; nil for none
	follows bool                           // the call was made earlier, and only follows the app's task
	asked   struct{ name, account string } // as the caller wrote them; resolve replaces Name and Account
	waited  bool                           // the call has waited for a person to log in or to choose an account

	// Set by resolve.
	server, name string       // name is the tool's own name
	tool         *callable    // a tool of an app
	lists        *mergedLists // the lists that contain the tool
	system       *System      // one of the server's own tools
	own          *core.Tool   // system as it is listed

	budget  int             // maximum tokens of the result's text; 0 for no limit
	account callAccount     // the account that the app is called with; zero for none
	named   string          // the account that the person of a stateless client has chosen; "" for none
	reply   json.RawMessage // the result, if the call asks for a login or an account first; otherwise nil
}

// Call calls a tool in c's workspace. It returns the result as the app wrote it, and whether the result says that the
// tool failed. If the app returns a JSON-RPC error, the error is an *rpc.Error.
//
// The checks return, in this order: core.CodeToolNotFound, CodeToolHeld, CodeFeatureDisabled, CodeForbidden,
// CodeInvalidInput, CodeApprovalPending, CodeApprovalRefused. If the app is still starting, the call waits for it.
func (n *Namespace) Call(ctx context.Context, c core.Caller, call Call) (result json.RawMessage, failed bool, err error) {
	result, read, err := n.call(ctx, c, &call, nil)
	return result, read.isError, err
}

// call is like Call. task is the task that the call is or may become; nil for none.
func (n *Namespace) call(ctx context.Context, c core.Caller, r *Call, task *taskRun) (json.RawMessage, callResult, error) {
	if len(r.Arguments) == 0 || bytes.Equal(r.Arguments, []byte("null")) {
		r.Arguments = json.RawMessage("{}")
	}
	meant := n.unwrap(r)
	r.n, r.caller, r.task, r.follows = n, c, task, task != nil && task.isAppTask()
	r.asked.name, r.asked.account = r.Name, r.Account
	raw, read, err := n.perform(ctx, c, r)
	if err == nil && r.budget > 0 && !read.needsInput {
		raw = n.fitResult(ctx, c, r.Name, r.budget, raw)
	}
	if err == nil && meant {
		raw = r.withView(raw)
	}
	return raw, read, err
}

// startSpan implements request.
func (r *Call) startSpan(ctx context.Context) (context.Context, tracing.Span) {
	return tracing.StartTool(ctx, r.Name, r.ID, r.caller.Workspace.ID)
}

// record implements request.
func (r *Call) record() (method, target string, arguments json.RawMessage) {
	if r.follows {
		return "tasks/resume", r.nameWith(), nil
	}
	return "tools/call", r.nameWith(), r.Arguments
}

// measure implements request. Unknown tool names are not recorded, because callers can choose them freely.
func (r *Call) measure(result callResult, err error) {
	if r.follows { // the call was counted when it was made
		return
	}
	app, tool := r.server, r.name
	if r.tool == nil && r.system == nil {
		app, tool = "", ""
	}
	if r.n.o.Metrics != nil {
		r.n.o.Metrics.ToolCall(app, tool, result.isError, err)
	}
}

// admit implements request.
func (r *Call) admit(ctx context.Context) error {
	err := r.resolve(ctx)
	if core.CodeOf(err) == core.CodeToolNotFound && r.server != SystemServer && strings.Contains(r.Name, "__") {
		if r.caller, err = r.n.await(ctx, r.caller, r.server, r.name, err); err == nil {
			err = r.resolve(ctx)
		}
	}
	if err == nil {
		r.budget, err = r.n.budgetOf(r.Meta)
	}
	if err == nil {
		err = r.chooseAccount(ctx)
		r.task.resolved(r.Name, r.account.Name)
	}
	if err == nil && r.Chose != nil {
		r.Chose(r.Name, r.account.Name)
	}
	if err == nil && r.waited {
		err = r.readmit(ctx)
	}
	if err != nil || r.reply != nil || !r.needsApproval() {
		return err
	}
	return r.awaitApproval(ctx)
}

// await waits for an app whose lists are not known yet, and returns the caller with its current rights. name is the
// tool that the caller asks for, or "" if the caller asks for something else from the app. If it succeeds, look up the
// tool again, even if there was nothing to wait for, because the app may have started in the meantime. Anything that
// the caller's views would hide is rejected immediately with unknown, as if it did not exist.
func (n *Namespace) await(ctx context.Context, c core.Caller, server, name string, unknown error) (core.Caller, error) {
	if views := n.viewsOf(c); views != nil && !views.MayShow(server, name) {
		return c, unknown
	}
	waiting, span := tracing.StartWait(ctx, "the app")
	err := n.o.Apps.AwaitOffer(waiting, c.Workspace.ID, server)
	span.End(err)
	if err != nil {
		return c, err
	}
	return n.current(ctx, c)
}

// readmit checks the call again after it has waited for a person: the caller's rights and views, the tool and the
// account may have changed in the meantime.
func (r *Call) readmit(ctx context.Context) (err error) {
	if r.caller, err = r.n.current(ctx, r.caller); err != nil {
		return err
	}
	r.Name, r.Account = r.asked.name, r.asked.account
	if err := r.resolveFor(ctx, cmp.Or(r.Account, r.account.Name)); err != nil || r.account.ID == "" {
		return err
	}
	a, err := r.choose(ctx, r.account.Name)
	if err == nil && a.ID != r.account.ID {
		err = core.Errorf(core.CodeConflict, "the account %s of the app %s changed while the call waited; call the tool again", r.account.Name, r.server)
	}
	return err
}

// recheck checks the call again after it has waited for its app. The app may have started with another tool of the same
// name.
func (r *Call) recheck(ctx context.Context) error {
	called := r.tool
	r.CheckInput = false // Arguments were checked and then cleared
	if err := r.readmit(ctx); err != nil {
		return err
	}
	if !bytes.Equal(r.tool.Raw, called.Raw) && r.needsApproval() {
		return core.Errorf(core.CodeConflict, "tool %q changed while the call waited for its app; call it again", r.Name)
	}
	return nil
}

// resolve finds the tool and checks the call.
func (r *Call) resolve(ctx context.Context) error { return r.resolveFor(ctx, r.Account) }

// resolveFor is like resolve, but finds the tool as an account sees it. account is "" for any.
func (r *Call) resolveFor(ctx context.Context, account string) error {
	r.server, r.name, _ = strings.Cut(r.Name, "__")
	if r.server == SystemServer {
		return r.resolveSystem(ctx)
	}
	lists := r.n.listsWith(r.caller, r.From, r.server, account)
	tool := lists.tool(r.Name, r.Session)
	if tool == nil && r.n.o.Accounts != nil {
		if plain, account := SplitAccount(r.Name); account != "" {
			if r.Account != "" && r.Account != account {
				return core.Errorf(core.CodeBadRequest, "account is %.50q, but the tool's name contains another account, %.50q", r.Account, account)
			}
			r.Name, r.Account = plain, account
			r.server, r.name, _ = strings.Cut(plain, "__")
			lists = r.n.listsWith(r.caller, r.From, r.server, account)
			tool = lists.tool(plain, r.Session)
		}
	}
	if reason, held := lists.held[r.Name]; held && tool == nil {
		return core.Errorf(core.CodeToolHeld, "%s", reason)
	}
	if tool == nil {
		return notFound(r.Name)
	}
	r.server, r.name = tool.Server, tool.Name
	r.Name = tool.full // not the caller's name for it, because tasks, kept results and the audit log outlive views and bare names
	if r.CheckInput {
		if err := r.n.validator.CheckArguments(ctx, tool.Tool, r.Arguments); err != nil {
			return err
		}
	}
	if len(r.InputResponses) > 0 && !r.caller.MayNameRoots() {
		r.InputResponses = withoutRoots(r.InputResponses)
	}
	r.tool, r.lists = tool, lists
	return nil
}

func (r *Call) resolveSystem(ctx context.Context) error {
	for i := range r.n.system {
		if s := &r.n.system[i]; s.Name == r.name {
			if views := r.n.viewsOf(r.caller); views != nil && !r.n.showsSystem(views, i) {
				break
			}
			r.system, r.own = s, &r.n.own[i].Tool
			return r.n.admitSystem(ctx, r.caller, s, r.Arguments)
		}
	}
	return notFound(r.Name)
}

// needsApproval reports whether the call waits for an approval; the tool must be resolved. A call that continues an
// earlier one waits again, because the approval covers its input responses.
func (r *Call) needsApproval() bool {
	switch {
	case r.n.o.Approvals == nil || r.follows:
		return false
	case r.system != nil:
		return r.n.o.Approvals.Needs(*r.own)
	}
	return r.tool.approval
}

// awaitApproval waits for an approval, and then checks the call again.
func (r *Call) awaitApproval(ctx context.Context) error {
	call := trust.Call{Arguments: r.Arguments, More: []json.RawMessage{r.InputResponses, r.RequestState}}
	call.Account = r.account.Name
	if r.account.ID != "" && !r.account.Exchanged {
		call.More = append(call.More, rawjson.Quote(r.account.ID))
	}
	if r.system != nil {
		call.Tool = *r.own
	} else {
		call.Tool = r.tool.Tool
	}
	waiting, span := tracing.StartWait(ctx, "an approval")
	err := r.n.o.Approvals.Await(waiting, r.caller, call, r.progress())
	span.End(err)
	if err == nil {
		err = r.readmit(ctx)
	}
	if err == nil && r.tool != nil && !bytes.Equal(r.tool.Raw, call.Tool.Raw) {
		return core.Errorf(core.CodeApprovalRefused, "tool %q changed while the call waited for an approval; call it again", r.Name)
	}
	return err
}

// progress returns a function that reports to the client that the call is waiting. It does nothing if the client did
// not ask for progress.
func (r *Call) progress() func(message string) {
	at, err := rawjson.Find(r.Meta, "progressToken")
	if err != nil || at.Empty() || r.Notify == nil {
		return func(string) {}
	}
	token, n := at.In(r.Meta), 0
	return func(message string) {
		n++ // progress must increase, and must stay below the values that the app reports later
		r.Notify(rpc.Notification{
			Method: "notifications/progress",
			Params: fmt.Appendf(nil, `{"progressToken":%s,"progress":%de-6,"message":%s}`, token, n, rawjson.Quote(message)),
		})
	}
}

// send implements request.
func (r *Call) send(ctx context.Context) (json.RawMessage, callResult, error) {
	if r.system != nil {
		raw, err := r.system.run(ctx, r.caller, r.From, r.Arguments)
		return raw, readResult(raw), err
	}
	if r.reply != nil {
		return r.reply, readResult(r.reply), nil
	}
	r.n.lowerLogLevel(ctx, r.caller, r.From, r.Meta)
	raw, err := r.callApp(ctx)
	if err != nil {
		return nil, callResult{}, err
	}
	if r.reply != nil {
		return r.reply, readResult(r.reply), nil
	}
	result := readResult(raw)
	if result.isTask {
		return nil, callResult{}, &rpc.Error{Code: rpc.CodeInternalError, Message: "the app answered with a task, but the call's client does not accept tasks"}
	}
	if result.needsInput {
		if raw, err = r.guardInput(raw); err != nil {
			return nil, callResult{}, err
		}
	}
	if result.linked && (r.n.takeLinks(r.caller, r.From, r.lists.uris, r.server, raw) || r.lists.uris.mentions(raw)) {
		raw = relinkedContent(r.lists.uris, r.server, raw)
	}
	if r.Agent && !r.tool.ReadOnly && !result.isError && !result.needsInput {
		r.n.o.Events.Publish(core.Event{Name: core.EventDataChanged, Workspace: r.caller.Workspace.ID, Data: core.DataChanged{
			Server: r.server, Tool: r.name, Timestamp: core.Stamp(time.Now()),
		}})
	}
	return raw, result, nil
}

// callApp calls the app. If the app rejects the call because its account lacks a login or rights, nothing has been done
// yet, so the app is called again once the person has logged in.
func (r *Call) callApp(ctx context.Context) (json.RawMessage, error) {
	progress, meta := r.progress(), r.Meta
	call := r.forApp()
	params := call.Params // making the call clears them
	raw, err := r.n.o.Apps.Call(ctx, r.caller.Workspace.ID, r.server, call)
	if r.account.ID == "" || core.CodeOf(err) != core.CodeLoginNeeded {
		return raw, err
	}
	r.Meta = meta
	a, err := r.login(ctx, r.n.o.Accounts.Needed(r.caller, core.Account{ID: r.account.ID, App: r.server, Name: r.account.Name}, err), false, progress)
	if err != nil || r.reply != nil {
		return nil, err
	}
	called, approved := r.tool, r.account
	r.account, r.CheckInput = accountOf(a), false // Arguments were checked and then cleared
	if err := r.readmit(ctx); err != nil {
		return nil, err
	}
	if !bytes.Equal(r.tool.Raw, called.Raw) || r.needsApproval() && a.ID != approved.ID {
		return nil, core.Errorf(core.CodeConflict, "tool %q or its account changed while the call waited for a login; call it again", r.Name)
	}
	return r.n.o.Apps.Call(ctx, r.caller.Workspace.ID, r.server, call.Again(params, a.ID))
}

// forApp returns the call as the app receives it. It clears the corresponding fields of r, because they may be large
// and the app may take a long time.
func (r *Call) forApp() *interact.Call {
	call := r.n.request(r.caller, "tools/call", params(r.tool.quoted, r), r.Meta, r.Notify, r.From)
	call.Account, call.Recheck = r.account.ID, r.recheck
	call.Target, call.Mirrors, call.AsTask, call.Follow = r.tool.Name, r.tool.Mirrors, r.tool.TaskOnly, r.task.follow()
	r.Arguments, r.Meta, r.InputResponses, r.RequestState = nil, nil, nil, nil
	return call
}

// params builds the params of tools/call without decoding the arguments. quoted is the tool's own name as JSON.
func params(quoted []byte, call *Call) json.RawMessage {
	p := make([]byte, 0, len(quoted)+len(call.Arguments)+len(call.Meta)+len(call.InputResponses)+len(call.RequestState)+80)
	p = append(append(p, `{"name":`...), quoted...)
	p = append(append(p, `,"arguments":`...), call.Arguments...)
	for _, m := range []struct {
		name  string
		value json.RawMessage
	}{{"_meta", call.Meta}, {"inputResponses", call.InputResponses}, {"requestState", call.RequestState}} {
		if len(m.value) > 0 {
			p = append(append(append(p, `,"`...), m.name...), `":`...)
			p = append(p, m.value...)
		}
	}
	return append(p, '}')
}

func notFound(name string) error {
	return core.Errorf(core.CodeToolNotFound, "there is no tool %.200q in this workspace", name)
}

// callResult is the part of a CallToolResult that the server reads.
type callResult struct {
	isError    bool // the tool failed
	needsInput bool // not a final result: it asks the client for input first
	isTask     bool // the handle of a task instead of a result
	linked     bool // a part of its content refers to a resource
}

// readResult reads a result in one pass, because its text parts may be large. It returns the zero value if the
// result is not an object.
func readResult(result []byte) (r callResult) {
	s := rawjson.Scanner{Data: result}
	s.Space()
	err := s.Fields(func(key []byte) error {
		switch string(rawjson.Name(key)) {
		case "isError":
			r.isError = s.Begins('t')
		case "resultType":
			value, err := s.Take()
			r.needsInput, r.isTask = string(value) == `"input_required"`, string(value) == `"task"`
			return err
		case "content":
			if s.Begins('[') {
				return s.Items(func() error { return r.readPart(&s) })
			}
		}
		return s.Value()
	})
	if err != nil {
		return callResult{}
	}
	return r
}

// readPart reads a part of the content. A resource_link has a uri, and an embedded resource has a resource.
func (r *callResult) readPart(s *rawjson.Scanner) error {
	if !s.Begins('{') {
		return s.Value()
	}
	return s.Fields(func(key []byte) error {
		switch string(rawjson.Name(key)) {
		case "uri", "resource":
			r.linked = true
		}
		return s.Value()
	})
}
