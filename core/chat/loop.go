package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat/elicit"
	"github.com/ropewalk/ropewalk/core/chat/model"

	"github.com/ropewalk/ropewalk/core/tracing"
)

// loop asks a model, calls the tools it asks for, and asks again, until it asks for none. A run is one
// loop, and so is a delegated task.
type loop struct {
	e            *Engine
	caller       core.Caller
	llm          selected
	effort       string // how much the model thinks
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
	save         func(context.Context, *turn) // keeps what a turn has so far, nil for nothing; nil to not
	turn         *unfinished                  // of the iteration
	guard        func(context.Context) error  // whether the caller may still go on; nil when nobody checks

	iterations int
	texts      []string
	calls      []ToolCall
	summary    *model.Block // of messages that were left out, until it is stored with a turn
	fits       int          // bytes of messages that the model's context is taken to have room for; 0 when only its window counts
	shrunk     int          // how often the provider found the messages too long
	word       string       // the provider's, of UnknownEnd
	cutCall    bool         // a call was cut off with the answer
	lost       string       // why the caller may not go on; "" while it may
}

// turn is one turn of the model, with the results of its tools.
type turn struct {
	text     string
	messages []model.Message // what the next model call needs of it; none when nothing was said
	calls    []ToolCall
	used     core.Usage
	stopped  StopReason   // when the run ended here before it was complete
	summary  *model.Block // that was made before the turn; nil for none

	stopMessage string // what stopped means, for a person
}

// response is everything that was said.
func (l *loop) response() string { return strings.Join(l.texts, turnSeparator) }

// turnSeparator is between the texts of two turns, in the response, in history and in what is streamed.
const turnSeparator = partSeparator

func (l *loop) run(ctx context.Context, emit Emit) (StopReason, error) {
	l.messages = l.e.images.fitResults(ctx, l.messages)
	for l.iterations < l.limit {
		if l.hasLostAccess(ctx) {
			return Cancelled, nil
		}
		l.keepFitting(ctx, emit)
		l.iterations++
		l.turn = newUnfinished(l.save)
		answer, used, err := l.callModel(ctx, emit)
		if err != nil && l.shrink(ctx, emit, answer, err) {
			l.iterations--
			continue
		}
		if text := answer.Text(); text != "" {
			l.texts = append(l.texts, text)
		}
		if err != nil {
			return l.storePartial(ctx, answer, used, err)
		}
		if reason, done, err := l.endTurn(ctx, answer, used, emit); done || err != nil {
			return reason, err
		}
	}
	return MaxIterations, nil
}

// endTurn does what an answer asks for, and stores the turn. done means that the run ends with it.
func (l *loop) endTurn(ctx context.Context, answer model.Answer, used core.Usage, emit Emit) (reason StopReason, done bool, err error) {
	l.word, l.cutCall = answer.Word, answer.CutCall
	if withholdsCalls(answer.End) {
		answer.Blocks = slices.DeleteFunc(answer.Blocks, func(b model.Block) bool { return b.Kind == model.ToolUse })
	}
	calls := toolUses(answer)
	used.ToolCalls = len(calls)
	l.totals.add(used)
	t := turn{text: answer.Text(), used: used, summary: l.summary}
	l.summary = nil
	if len(answer.Blocks) > 0 {
		t.messages = []model.Message{{Role: model.Assistant, Blocks: answer.Blocks}}
	}
	switch {
	case len(calls) > 0:
		reason, err = l.runTools(ctx, calls, t, emit)
		return reason, reason != "", err
	case answer.End == model.EndPause: // it goes on when it gets back what it said
		l.messages = append(l.messages, t.messages...)
		return "", false, l.store(ctx, t)
	}
	reason = reasonOf(answer.End)
	if reason != Complete {
		t.stopped, t.stopMessage = reason, l.stopMessage(reason)
	}
	return reason, true, l.store(ctx, t)
}

// runTools calls the tools of a turn and stores the turn. A reason means that the run ends with it.
func (l *loop) runTools(ctx context.Context, calls []*model.Block, t turn, emit Emit) (StopReason, error) {
	l.turn.called(t.messages[0].Blocks)
	d := l.dispatch(ctx, calls, emit)
	t.calls = d.calls
	t.messages = append(t.messages, model.Message{Role: model.User, Blocks: d.results})
	var reason StopReason
	switch budget := l.llm.models.budget; {
	case ctx.Err() != nil:
		reason = l.leftFor(ctx)
	case l.hasLostAccess(ctx):
		reason = Cancelled
	case budget > 0 && l.totals.tokens() >= budget:
		reason = TokenBudget
	}
	t.stopped, t.stopMessage = reason, l.stopMessage(reason)
	if err := l.store(ctx, t); err != nil {
		return "", err
	}
	d.emitLast()
	for _, c := range t.calls {
		c.Result = nil // the client has it already, or did not ask for it
		l.calls = append(l.calls, c)
	}
	l.messages = append(l.messages, t.messages...)
	return reason, nil
}

// storePartial stores what was said until a call failed, or until the person left.
func (l *loop) storePartial(ctx context.Context, answer model.Answer, used core.Usage, err error) (StopReason, error) {
	l.turn.end()
	t, left := turn{text: answer.Text(), used: used, summary: l.summary}, ctx.Err() != nil
	t.stopped = ProviderError
	if left {
		t.stopped = l.leftFor(ctx)
	}
	t.stopMessage = l.stopMessage(t.stopped)
	if t.text != "" {
		t.messages = []model.Message{{Role: model.Assistant, Blocks: partialBlocks(answer.Blocks)}}
	}
	if t.text != "" || t.summary != nil || used.InputTokens+used.OutputTokens > 0 {
		l.totals.add(used)
		if failed := l.store(ctx, t); failed != nil && core.CodeOf(failed) != core.CodeNotFound {
			return "", errors.Join(failed, err)
		}
	} else if l.save != nil {
		l.save(context.WithoutCancel(ctx), nil)
	}
	if left {
		err = nil // a person who leaves is not a failure
	}
	return t.stopped, err
}

// leftFor is why a run ends whose context has ended.
func (l *loop) leftFor(ctx context.Context) StopReason {
	cause := context.Cause(ctx)
	if errors.Is(cause, errServerEnds) {
		return Incomplete
	}
	l.lost = sentenceOf(cause)
	return Cancelled
}

// sentenceOf is the message of an error that says why a caller may not go on; "" for other errors.
func sentenceOf(err error) string {
	if lost, ok := errors.AsType[*core.Error](err); ok {
		return lost.Message
	}
	return ""
}

// hasLostAccess reports whether the caller may not go on, and keeps why.
func (l *loop) hasLostAccess(ctx context.Context) bool {
	err := l.admitted(ctx)
	if err != nil {
		l.lost = sentenceOf(err)
	}
	return err != nil
}

// admitted returns an error when the caller may not go on.
func (l *loop) admitted(ctx context.Context) error {
	if l.guard == nil {
		return nil
	}
	return l.guard(ctx)
}

// partialBlocks are the blocks of an answer that was broken off: what was said, and what a person may read of the
// reasoning. Nothing of it goes back to the provider as its own.
func partialBlocks(blocks []model.Block) (kept []model.Block) {
	for _, b := range blocks {
		if b.Kind == model.Text || b.Kind == model.Reasoning {
			b.Raw = nil
			kept = append(kept, b)
		}
	}
	return kept
}

// callModel calls the model once.
func (l *loop) callModel(ctx context.Context, emit Emit) (model.Answer, core.Usage, error) {
	start := time.Now()
	r := model.Request{
		System: l.system, Messages: withLatestImages(model.ForModel(l.messages, l.llm.origin)), Tools: l.toolset.tools(),
		MaxTokens: l.llm.models.maxOutput, Effort: l.effort,
	}
	if l.toolset.isPartial() {
		r.System = append(r.System[:len(r.System):len(r.System)], partialNote)
	}
	ctx, span := tracing.StartModel(ctx, tracing.Model{
		Provider: l.llm.vendor, Name: l.llm.name, Conversation: l.conversation, MaxTokens: r.MaxTokens,
	})
	answer, err := model.Call(ctx, l.llm.provider, l.llm.name, r,
		l.pieces(emit),
		func(e *model.Error, pause time.Duration) {
			l.e.log.Info("model call failed; retrying", "model", l.llm.full, "status", e.Status, "pause", pause.Round(time.Millisecond).String(), "error", e)
		})
	endModelSpan(span, answer, err)
	addMissingIDs(&answer)
	model.Sign(answer.Blocks, l.llm.origin)
	used := l.llm.usage(l.caller, answer.Usage, start)
	l.e.metrics.ModelCall(used, err != nil && ctx.Err() == nil)
	return answer, used, err
}

// pieces passes the pieces of an answer on as events.
func (l *loop) pieces(emit Emit) model.Pieces {
	before := ""
	if len(l.texts) > 0 {
		before = turnSeparator
	}
	return model.Pieces{
		Text: func(text string) {
			l.turn.change(func() { l.turn.text.WriteString(text) })
			emit(Event{EventText, textDelta{RunID: l.runID, Text: before + text}})
			before = ""
		},
		Thought: func(text string) {
			l.turn.change(func() { l.turn.thought.WriteString(text) })
			emit(Event{EventReasoning, textDelta{RunID: l.runID, Text: text}})
		},
		Thinking: func(took time.Duration) {
			emit(Event{EventReasoned, reasoned{RunID: l.runID, Ms: took.Milliseconds()}})
		},
	}
}

// endModelSpan ends the span of a call of a model. The conventions count cached tokens as input, too.
func endModelSpan(span tracing.Span, a model.Answer, err error) {
	u := tracing.ModelUsage{
		Input: a.Usage.Input + a.Usage.CacheRead + a.Usage.CacheWrite, Output: a.Usage.Output,
		CacheRead: a.Usage.CacheRead, CacheWrite: a.Usage.CacheWrite, Finish: "stop",
	}
	switch {
	case a.End != model.EndTurn:
		u.Finish = string(a.End)
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
