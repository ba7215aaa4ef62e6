package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat/elicit"
	"github.com/ropewalk/ropewalk/core/chat/model"
	"github.com/ropewalk/ropewalk/core/chat/part"
	"github.com/ropewalk/ropewalk/core/tracing"
)

// loop asks a model, calls the tools it asks for, and asks again, until it asks for none. A run is one
// loop, and so is a delegated task.
type loop struct {
	e            *Engine
	caller       core.Caller
	llm          selected
	runID        string
	conversation string // "" for a task that no conversation delegated
	limit        int    // of iterations
	depth        int    // 1 for a delegated task
	system       []string
	messages     []model.Message
	toolset      *toolset
	session      *elicit.Session // in which apps ask the person; nil when there is nobody
	within       string          // the tool call that a delegated task works for
	totals       *tally
	store        func(context.Context, turn) error

	iterations int
	texts      []string
	calls      []ToolCall
}

// turn is one turn of the model, with the results of its tools.
type turn struct {
	text     string
	messages []model.Message // what the next model call needs of it; none when nothing was said
	calls    []ToolCall
	used     core.Usage
	stopped  StopReason // when the run ended here before it was complete
}

// response is everything that was said.
func (l *loop) response() string { return strings.Join(l.texts, turnSeparator) }

// turnSeparator is between the texts of two turns, in the response, in history and in what is streamed.
const turnSeparator = part.Separator

func (l *loop) run(ctx context.Context, emit Emit) (StopReason, error) {
	for l.iterations < l.limit {
		l.iterations++
		answer, used, err := l.callModel(ctx, emit)
		if text := answer.Text(); text != "" {
			l.texts = append(l.texts, text)
		}
		if err != nil {
			return l.storePartial(ctx, answer, used, err)
		}
		calls := toolUses(answer)
		used.ToolCalls = len(calls)
		l.totals.add(used)
		t := turn{text: answer.Text(), used: used}
		if len(answer.Blocks) > 0 {
			t.messages = []model.Message{{Role: model.Assistant, Blocks: answer.Blocks}}
		}
		if len(calls) == 0 {
			reason := Complete
			if answer.Cut {
				reason, t.stopped = TokenBudget, TokenBudget
			}
			return reason, l.store(ctx, t)
		}
		if reason, err := l.runTools(ctx, calls, t, emit); err != nil || reason != "" {
			return reason, err
		}
	}
	return MaxIterations, nil
}

// runTools calls the tools of a turn and stores the turn. A reason means that the run ends with it.
func (l *loop) runTools(ctx context.Context, calls []*model.Block, t turn, emit Emit) (StopReason, error) {
	d := l.dispatch(ctx, calls, emit)
	t.calls = d.calls
	t.messages = append(t.messages, model.Message{Role: model.User, Blocks: d.results})
	var reason StopReason
	switch budget := l.llm.models.budget; {
	case ctx.Err() != nil:
		reason = Cancelled
	case budget > 0 && l.totals.tokens() >= budget:
		reason = TokenBudget
	}
	t.stopped = reason
	if err := l.store(ctx, t); err != nil {
		return "", err
	}
	d.emitLast()
	l.calls = append(l.calls, t.calls...)
	l.messages = append(l.messages, t.messages...)
	return reason, nil
}

// storePartial stores what was said until a call failed, or until the person left.
func (l *loop) storePartial(ctx context.Context, answer model.Answer, used core.Usage, err error) (StopReason, error) {
	t, left := turn{text: answer.Text(), used: used}, ctx.Err() != nil
	if left {
		t.stopped = Cancelled
	}
	if t.text != "" {
		t.messages = []model.Message{model.Said(model.Assistant, t.text)}
	}
	if t.text != "" || used.InputTokens+used.OutputTokens > 0 {
		l.totals.add(used)
		if failed := l.store(ctx, t); failed != nil && core.CodeOf(failed) != core.CodeNotFound {
			return "", errors.Join(failed, err)
		}
	}
	if left {
		err = nil // a person who leaves is not a failure
	}
	return t.stopped, err
}

// callModel calls the model once.
func (l *loop) callModel(ctx context.Context, emit Emit) (model.Answer, core.Usage, error) {
	start := time.Now()
	r := model.Request{System: l.system, Messages: l.messages, Tools: l.toolset.tools(), MaxTokens: l.llm.models.maxOutput}
	if l.toolset.isPartial() {
		r.System = append(r.System[:len(r.System):len(r.System)], partialNote)
	}
	before := ""
	if len(l.texts) > 0 {
		before = turnSeparator
	}
	ctx, span := tracing.StartModel(ctx, tracing.Model{
		Provider: l.llm.vendor, Name: l.llm.name, Conversation: l.conversation, MaxTokens: r.MaxTokens,
	})
	answer, err := model.Call(ctx, l.llm.provider, l.llm.name, r,
		func(text string) {
			emit(Event{EventText, textDelta{RunID: l.runID, Text: before + text}})
			before = ""
		},
		func(e *model.Error, pause time.Duration) {
			l.e.log.Info("model call failed; retrying", "model", l.llm.full, "status", e.Status, "pause", pause.Round(time.Millisecond).String(), "error", e)
		})
	endModelSpan(span, answer, err)
	addMissingIDs(&answer)
	used := l.llm.usage(l.caller, answer.Usage, start)
	l.e.metrics.ModelCall(used, err != nil && ctx.Err() == nil)
	return answer, used, err
}

// endModelSpan ends the span of a call of a model. The conventions count cached tokens as input, too.
func endModelSpan(span tracing.Span, a model.Answer, err error) {
	u := tracing.ModelUsage{
		Input: a.Usage.Input + a.Usage.CacheRead + a.Usage.CacheWrite, Output: a.Usage.Output,
		CacheRead: a.Usage.CacheRead, CacheWrite: a.Usage.CacheWrite, Finish: "stop",
	}
	switch {
	case a.Cut:
		u.Finish = "length"
	case len(toolUses(a)) > 0:
		u.Finish = "tool_calls"
	}
	span.EndModel(u, err)
}

// usage is what one call used, with its price.
func (s selected) usage(by core.Caller, u model.Usage, start time.Time) core.Usage {
	return core.Usage{
		Workspace: by.Workspace.ID, User: by.User.ID, Model: s.full, At: start, LLM: time.Since(start),
		InputTokens: u.Input, OutputTokens: u.Output, CacheReadTokens: u.CacheRead, CacheWriteTokens: u.CacheWrite,
		CostUSD: s.models.prices.Cost(s.full, u),
	}
}

// addMissingIDs gives ids to tool calls without one: some providers send none.
func addMissingIDs(a *model.Answer) {
	for i := range a.Blocks {
		if b := &a.Blocks[i]; b.Kind == model.ToolUse {
			b.ID = cmp.Or(b.ID, core.RandomID("call_"))
		}
	}
}

// toolUses returns the tool calls that an answer asks for.
func toolUses(a model.Answer) (calls []*model.Block) {
	for i := range a.Blocks {
		if a.Blocks[i].Kind == model.ToolUse {
			calls = append(calls, &a.Blocks[i])
		}
	}
	return calls
}

// removeInvalidInput removes arguments that are not JSON, which a conversation cannot hold, and returns
// them.
func removeInvalidInput(b *model.Block) (invalid string, removed bool) {
	if json.Valid(b.Input) {
		return "", false
	}
	invalid = string(b.Input)
	b.Input = json.RawMessage("{}")
	return invalid, true
}
