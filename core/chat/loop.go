package chat

import (
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

// loop repeatedly calls a model and the tools that it requests, until the model requests none. A run is one
// loop, and so is a delegated task.
type loop struct {
	e            *Engine
	caller       core.Caller
	llm          selected
	effort       string // reasoning effort; see Request.Effort
	runID        string
	conversation string // "" for a task delegated from outside a conversation
	limit        int    // maximum number of iterations
	depth        int    // 1 for a delegated task
	system       []string
	messages     []model.Message
	toolset      *toolset
	session      *elicit.Session // lets apps ask the person; nil if there is nobody to ask
	within       string          // the tool call that delegated this task
	totals       *tally
	store        func(context.Context, turn) error
	save         func(context.Context, *turn) // saves an unfinished turn, and discards it if the turn is nil; nil if turns are not saved
	turn         *unfinished                  // the turn of the current iteration
	// guard returns the caller with their current rights, or an error if the caller may not continue. It is nil if there
	// is nothing to check.
	guard func(context.Context) (core.Caller, error)

	iterations int
	texts      []string
	calls      []ToolCall
	summary    *model.Block    // replaces older messages; nil once it is stored with a turn
	fits       int             // bytes of messages assumed to fit after the provider rejected more; 0 if only the model's window counts
	probed     bool            // this run has already searched for rejected tools
	leftOut    map[string]bool // hashes of the tools that are left out of this run
	shrunk     int             // how many times the provider rejected the messages as too long
	word       string          // the provider's own reason, for UnknownEnd
	cutCall    bool            // the answer was cut off in the middle of a tool call
	lost       string          // why the caller may not continue, in a sentence; "" while it may
}

// turn is one turn of the model with the results of its tool calls.
type turn struct {
	text     string
	messages []model.Message // as the next model call needs them; empty if the model said nothing
	calls    []ToolCall
	used     core.Usage   // see usage and hasUsage
	stopped  StopReason   // set if the run ended here without being complete
	summary  *model.Block // a summary of earlier messages, written before the turn; nil for none

	stopMessage string // explains stopped to the person
}

// usage returns the usage to record: none if the provider did not respond at all.
func (t turn) usage() []core.Usage {
	if t.used.At.IsZero() {
		return nil
	}
	return []core.Usage{t.used}
}

// hasUsage reports whether the usage of the turn is known. A provider reports it at the end of an answer.
func (t turn) hasUsage() bool {
	return t.stopped == "" || t.stopped != Incomplete && t.used.InputTokens+t.used.OutputTokens > 0
}

// response returns the text of all turns.
func (l *loop) response() string { return strings.Join(l.texts, turnSeparator) }

// turnSeparator separates the text of two turns in the response, in the history and in the streamed text.
const turnSeparator = partSeparator

func (l *loop) run(ctx context.Context, emit Emit) (StopReason, error) {
	l.messages = l.e.images.fitAll(ctx, l.messages)
	for {
		if l.hasLostAccess(ctx) {
			return l.storeCancelled(ctx)
		}
		l.compactIfTooLong(ctx, emit)
		l.iterations++
		l.turn = newUnfinished(l.save)
		answer, used, err := l.callModel(ctx, emit)
		if err != nil && (l.shrink(ctx, emit, answer, err) || l.leaveOutRefused(ctx, answer, err)) {
			l.iterations--
			continue
		}
		if text := wordsOf(answer); text != "" {
			l.texts = append(l.texts, text)
		}
		if err != nil {
			return l.storePartial(ctx, answer, used, err)
		}
		if reason, done, err := l.endTurn(ctx, answer, used, emit); done || err != nil {
			return reason, err
		}
	}
}

// endTurn makes the tool calls that an answer requests, and stores the turn. done reports whether the run has ended.
func (l *loop) endTurn(ctx context.Context, answer model.Answer, used core.Usage, emit Emit) (reason StopReason, done bool, err error) {
	l.word, l.cutCall = answer.Word, answer.CutCall
	if withholdsCalls(answer.End) {
		answer.Blocks = slices.DeleteFunc(answer.Blocks, func(b model.Block) bool { return b.Kind == model.ToolUse })
	}
	calls := toolUses(answer)
	used.ToolCalls = len(calls)
	l.totals.add(used)
	t := turn{text: wordsOf(answer), used: used, summary: l.summary}
	l.summary = nil
	if len(answer.Blocks) > 0 {
		t.messages = []model.Message{{Role: model.Assistant, Blocks: answer.Blocks}}
	}
	switch {
	case len(calls) > 0:
		reason, err = l.runTools(ctx, calls, t, emit)
		return reason, reason != "", err
	case answer.End == model.EndPause: // the model continues once it receives its own answer
		l.messages = append(l.messages, t.messages...)
		if reason = l.reachedLimit(ctx, used); reason == "" {
			return "", false, l.store(ctx, t)
		}
	default:
		reason = reasonOf(answer.End)
	}
	if reason != Complete {
		t.stop(reason, l.stopMessage(reason))
	}
	t.fill()
	return reason, true, l.store(ctx, t)
}

// runTools calls the tools of a turn and stores the turn. The run has ended if the returned reason is not empty.
func (l *loop) runTools(ctx context.Context, calls []*model.Block, t turn, emit Emit) (StopReason, error) {
	l.turn.called(t.messages[0].Blocks, t.used)
	d := l.dispatch(ctx, calls, emit)
	t.calls = d.calls
	t.messages = append(t.messages, model.Message{Role: model.User, Blocks: d.results})
	var reason StopReason
	switch {
	case ctx.Err() != nil:
		reason = l.stopReason(ctx)
	case l.hasLostAccess(ctx):
		reason = Cancelled
	default:
		reason = l.reachedLimit(ctx, t.used)
	}
	t.stop(reason, l.stopMessage(reason))
	if err := l.store(ctx, t); err != nil {
		return "", err
	}
	d.emitLast()
	for _, c := range t.calls {
		c.Result = nil // the client already has it or does not need it
		l.calls = append(l.calls, c)
	}
	l.messages = append(l.messages, t.messages...)
	return reason, nil
}

// reachedLimit returns the limit that the run has reached with a turn after which the model would continue; "" for none.
// used is not stored yet.
func (l *loop) reachedLimit(ctx context.Context, used core.Usage) StopReason {
	switch {
	case l.isOutOfTokens(ctx, used):
		return TokenBudget
	case l.iterations >= l.limit:
		return MaxIterations
	}
	return ""
}

// isOutOfTokens reports whether the run has reached its budget, or its caller the daily limit. used is not stored
// yet.
func (l *loop) isOutOfTokens(ctx context.Context, used core.Usage) bool {
	if budget := l.llm.models.budget; budget > 0 && l.totals.tokens() >= budget {
		return true
	}
	err := l.e.checkTokens(ctx, l.caller, used.InputTokens+used.OutputTokens)
	if core.CodeOf(err) != core.CodeRateLimited {
		return false // usage that cannot be read now does not end a run
	}
	l.lost = sentenceOf(err)
	return true
}

// storePartial stores the answer so far, and why it ended, when a model call fails or the run is cancelled.
func (l *loop) storePartial(ctx context.Context, answer model.Answer, used core.Usage, err error) (StopReason, error) {
	l.turn.end()
	t := turn{text: wordsOf(answer), used: used, summary: l.summary}
	if t.text != "" {
		t.messages = []model.Message{{Role: model.Assistant, Blocks: partialBlocks(answer.Blocks)}}
	} else if used.InputTokens+used.OutputTokens == 0 {
		t.used.At = time.Time{} // see turn.usage
	}
	if ctx.Err() != nil {
		reason := l.stopReason(ctx)
		t.stop(reason, l.stopMessage(reason))
		err = nil // a cancelled run is not a failure
	} else {
		failure := l.e.failure(l.caller, l.llm, err)
		t.stop(ProviderError, failure.Message)
		err = failure
	}
	l.totals.add(used)
	if failed := l.store(ctx, t); failed != nil && core.CodeOf(failed) != core.CodeNotFound {
		return "", errors.Join(failed, err)
	}
	return t.stopped, err
}

// storeCancelled stores why the run ends before a model call.
func (l *loop) storeCancelled(ctx context.Context) (StopReason, error) {
	reason := Cancelled
	if ctx.Err() != nil {
		reason = l.stopReason(ctx)
	}
	t := turn{summary: l.summary}
	t.stop(reason, l.stopMessage(reason))
	return reason, l.store(ctx, t)
}

// stop ends the run with a turn. The history states why, even if there is nothing else in the turn.
func (t *turn) stop(reason StopReason, message string) {
	t.stopped, t.stopMessage = reason, message
	t.fill()
}

// fill makes a turn in which the model said nothing appear in the history. Without it, the person's message would seem
// to be waiting for an answer.
func (t *turn) fill() {
	if len(t.messages) == 0 {
		t.messages = []model.Message{{Role: model.Assistant}}
	}
}

// stopReason returns the stop reason for a run whose context has ended.
func (l *loop) stopReason(ctx context.Context) StopReason {
	cause := context.Cause(ctx)
	if errors.Is(cause, errShutdown) {
		return Incomplete
	}
	l.lost = sentenceOf(cause)
	return Cancelled
}

// sentenceOf returns the message of a core.Error, which explains why the caller may not continue, or "" for other errors.
func sentenceOf(err error) string {
	if lost, ok := errors.AsType[*core.Error](err); ok {
		return lost.Message
	}
	return ""
}

// hasLostAccess reports whether the caller may no longer continue, and records why. Otherwise the model is offered the
// tools that the caller sees now.
func (l *loop) hasLostAccess(ctx context.Context) bool {
	now, err := l.admitted(ctx)
	if err != nil {
		l.lost = sentenceOf(err)
		return true
	}
	l.toolset.follow(now)
	return false
}

// admitted returns the caller with their current rights, or an error if the caller may not continue.
func (l *loop) admitted(ctx context.Context) (core.Caller, error) {
	if l.guard == nil {
		return l.caller, nil
	}
	return l.guard(ctx)
}

// partialBlocks returns the text and the readable reasoning of an answer that was cut off. Raw is removed, so none of
// it is sent back to the provider as the provider's own.
func partialBlocks(blocks []model.Block) (kept []model.Block) {
	for _, b := range blocks {
		if b.Kind == model.Text || b.Kind == model.Reasoning {
			b.Raw = nil
			kept = append(kept, b)
		}
	}
	return kept
}

func (l *loop) callModel(ctx context.Context, emit Emit) (model.Answer, core.Usage, error) {
	start := time.Now()
	r := model.Request{
		System: l.system, Messages: withLatestImages(model.ForModel(l.messages, l.llm.origin)), Tools: l.tools(ctx),
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
	l.setIDs(&answer)
	model.Sign(answer.Blocks, l.llm.origin)
	used := l.llm.usage(l.caller, answer.Usage, start)
	l.e.metrics.ModelCall(used, err != nil && ctx.Err() == nil)
	return answer, used, err
}

// pieces emits the pieces of an answer as events.
func (l *loop) pieces(emit Emit) model.Pieces {
	before := ""
	if len(l.texts) > 0 {
		before = turnSeparator
	}
	blank := ""
	return model.Pieces{
		Text: func(text string) {
			if l.turn.text.Len() == 0 && strings.TrimSpace(text) == "" { // see wordsOf
				blank += text
				return
			}
			text, blank = blank+text, ""
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

// wordsOf returns the text of an answer, or "" if it is blank: some models put empty lines between their reasoning and
// their tool calls.
func wordsOf(a model.Answer) string {
	if text := a.Text(); strings.TrimSpace(text) != "" {
		return text
	}
	return ""
}

// endModelSpan ends the span of a model call. OpenTelemetry's conventions count cached tokens as input tokens, too.
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

// usage returns the usage record of one model call, with its price.
func (s selected) usage(by core.Caller, u model.Usage, start time.Time) core.Usage {
	return core.Usage{
		Workspace: by.Workspace.ID, User: by.User.ID, Model: s.full, At: start, LLM: time.Since(start),
		InputTokens: u.Input, OutputTokens: u.Output, CacheReadTokens: u.CacheRead, CacheWriteTokens: u.CacheWrite,
		CostUSD: s.models.prices.Cost(s.full, u),
	}
}

// setIDs generates ids for tool calls that have none, or whose id is already used in the conversation: some providers
// do not send ids, and others start from the same one in each answer.
func (l *loop) setIDs(a *model.Answer) {
	taken := map[string]bool{"": true}
	for _, m := range l.messages {
		for _, b := range m.Blocks {
			taken[b.ID] = taken[b.ID] || b.Kind == model.ToolUse
		}
	}
	for i := range a.Blocks {
		if b := &a.Blocks[i]; b.Kind == model.ToolUse {
			if taken[b.ID] {
				b.ID = core.RandomID("call_")
			}
			taken[b.ID] = true
		}
	}
}

// toolUses returns the tool calls that an answer requests.
func toolUses(a model.Answer) (calls []*model.Block) {
	for i := range a.Blocks {
		if a.Blocks[i].Kind == model.ToolUse {
			calls = append(calls, &a.Blocks[i])
		}
	}
	return calls
}

// removeInvalidInput replaces arguments that are not JSON with {}, because a conversation cannot store them, and
// returns the original text.
func removeInvalidInput(b *model.Block) (invalid string, removed bool) {
	if json.Valid(b.Input) {
		return "", false
	}
	invalid = string(b.Input)
	b.Input = json.RawMessage("{}")
	return invalid, true
}
