package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat/elicit"
	"github.com/ropewalk/ropewalk/core/chat/model"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tools"
)

// Results up to these sizes, in bytes, are sent to the client in full. A result with a view is always sent in full,
// because the view needs it. The history has every result in full.
const (
	wholeText   = 64 << 10 // for a text-only result, because the client receives the text for the model as Output anyway
	wholeResult = 8 << 20
)

// dispatched contains one turn's completed tool calls, in the order in which the model requested them.
type dispatched struct {
	calls    []ToolCall
	results  []model.Block
	emitLast func() // emits tool.done for the call that completed last
}

// dispatch makes one turn's tool calls concurrently. emitLast of the result emits the event for the call that
// completes last; call it after the turn is stored.
func (l *loop) dispatch(ctx context.Context, asked []*model.Block, emit Emit) dispatched {
	d := dispatched{calls: make([]ToolCall, len(asked)), results: make([]model.Block, len(asked)), emitLast: func() {}}
	var wg sync.WaitGroup
	var mu sync.Mutex
	left := len(asked)
	for i, b := range asked {
		invalid, isInvalid := removeInvalidInput(b)
		name, tool := l.toolset.resolve(b.Name)
		b.Name = name
		call := ToolCall{ID: b.ID, Name: name, Input: b.Input, ResourceURI: core.ViewURI(tool.Server, tool.ViewURI)}
		emit(Event{EventToolStart, toolStart{RunID: l.runID, ID: call.ID, Name: name, Input: call.Input, ResourceURI: call.ResourceURI}})
		wg.Go(func() {
			start := time.Now()
			var raw json.RawMessage
			if isInvalid {
				call.Output = fmt.Sprintf("The input is not valid JSON, so the tool was not called: %.2000s", invalid)
			} else {
				raw, call.Output, call.OK = l.call(ctx, &call, emit)
			}
			call.Ms = time.Since(start).Milliseconds()
			call.Result = raw
			d.calls[i] = call
			d.results[i] = model.Block{Kind: model.ToolResult, ID: call.ID, Text: call.Output, Error: !call.OK, Files: l.e.images.fit(ctx, imagesOfResult(raw))}
			l.turn.answered(call, d.results[i])
			if call.ResourceURI == "" && (len(raw) > wholeResult || len(raw) > wholeText && isPlain(raw)) {
				raw = nil
			}
			done := func() {
				emit(Event{EventToolDone, toolDone{
					RunID: l.runID, ID: call.ID, Name: call.Name, Account: call.Account, OK: call.OK, Ms: call.Ms, Output: call.Output, ResourceURI: call.ResourceURI, Result: raw,
				}})
			}
			mu.Lock()
			defer mu.Unlock()
			if left--; left == 0 {
				d.emitLast = done
				return
			}
			done()
		})
	}
	wg.Wait()
	return d
}

// call calls one tool. It returns the raw result, the text that the model receives, and whether the tool succeeded.
// It sets c.Account.
func (l *loop) call(ctx context.Context, c *ToolCall, emit Emit) (raw json.RawMessage, output string, ok bool) {
	defer func() {
		if p := recover(); p != nil {
			l.e.log.Error("tool call panicked", "tool", c.Name, "panic", p, "stack", string(debug.Stack()))
			raw, output, ok = nil, "The tool failed inside the server.", false
		}
	}()
	if !l.toolset.allows(c.Name) {
		return nil, fmt.Sprintf("There is no tool %q that you can use here.", c.Name), false
	}
	caller, err := l.admitted(ctx)
	if err != nil {
		return nil, "The tool was not called. " + sentenceOf(err), false
	}
	token, _ := json.Marshal(map[string]string{"progressToken": c.ID}) // cannot fail for strings
	ctx = withTask(ctx, &task{loop: l, call: c.ID, progress: func(message string, step float64) {
		emit(Event{EventToolProgress, toolProgress{RunID: l.runID, ID: c.ID, Progress: step, Message: message}})
	}})
	called := c.Name
	call := tools.Call{
		Name: c.Name, ID: c.ID, Arguments: c.Input, Meta: token, Agent: true, CheckInput: true,
		Notify: func(n rpc.Notification) { l.emitProgress(c.ID, n, emit) },
		Chose:  func(tool, account string) { called, c.Account = tool, account },
	}
	raw, err = l.callTool(ctx, caller, call)
	if err != nil {
		return nil, l.failureText(ctx, c.Name, err), false
	}
	output, ok = textOfResult(raw)
	output = l.e.tools.FitText(ctx, caller, called, output)
	l.toolset.addSearchResult(c.Name, raw)
	return raw, output, ok
}

// callTool makes a tool call during which the app may ask the person questions.
func (l *loop) callTool(ctx context.Context, caller core.Caller, call tools.Call) (raw json.RawMessage, err error) {
	var asker *elicit.Asker
	if l.session != nil {
		asker = l.session.Asker(cmp.Or(l.within, call.ID), call.Name)
		call.From = asker.From()
	}
	call.Uses = l.toolset.allows
	raw, _, err = l.e.tools.Call(ctx, caller, call)
	if err != nil && asker != nil && asker.AcceptsURLs(ctx, err) {
		raw, _, err = l.e.tools.Call(ctx, caller, call)
	}
	return raw, err
}

// emitProgress forwards a progress notification of the tool as an event.
func (l *loop) emitProgress(id string, n rpc.Notification, emit Emit) {
	if n.Method != "notifications/progress" {
		return
	}
	p := toolProgress{RunID: l.runID, ID: id}
	var params struct {
		Progress float64  `json:"progress"`
		Total    *float64 `json:"total"`
		Message  string   `json:"message"`
	}
	if json.Unmarshal(n.Params, &params) != nil {
		return
	}
	p.Progress, p.Total, p.Message = params.Progress, params.Total, params.Message
	emit(Event{EventToolProgress, p})
}

// failureText explains to the model why a call failed.
func (l *loop) failureText(ctx context.Context, name string, err error) string {
	if ctx.Err() != nil {
		return "The call was cancelled."
	}
	if refused, ok := errors.AsType[*rpc.Error](err); ok {
		return truncate(refused.Message)
	}
	known, ok := errors.AsType[*core.Error](err)
	if !ok || known.Code == core.CodeInternal {
		l.e.log.Warn("tool call failed", "tool", name, "error", err)
		return "The tool failed: its app could not be reached, or stopped during the call."
	}
	text := known.Message
	if details, err := json.Marshal(known.Details); err == nil && known.Details != nil {
		text += ": " + string(details)
	}
	return truncate(text)
}
