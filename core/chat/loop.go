package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat/model"
)

// loop asks a model, calls the tools it asks for, and asks again, until it asks for none. A run is
// one, and a delegated task is one.
type loop struct {
	e            *Engine
	caller       core.Caller
	llm          chosen
	runID        string
	conversation string // "" for a task that no conversation delegated
	most         int    // iterations
	depth        int    // 1 for a delegated task
	system       []string
	messages     []model.Message
	offer        *offer
	asking       *asking // whom apps ask; nil when there is nobody
	within       string  // the call that a delegated task works for
	totals       *tally
	keep         func(context.Context, turn) error

	iterations int
	texts      []string
	calls      []ToolCall
}

// turn is one turn of the model, with what its tools answered.
type turn struct {
	text     string
	messages []model.Message // what the next call of a model needs of it; none when nothing was said
	calls    []ToolCall
	used     core.Usage
	stopped  StopReason // when the run ended here before it was complete
}

// response is everything that was said.
func (l *loop) response() string { return strings.Join(l.texts, between) }

// between turns there is an empty line, in the response and in what is streamed of it.
const between = "\n\n"

func (l *loop) run(ctx context.Context, emit Emit) (StopReason, error) {
	for l.iterations < l.most {
		l.iterations++
		answer, used, err := l.ask(ctx, emit)
		if text := answer.Text(); text != "" {
			l.texts = append(l.texts, text)
		}
		if err != nil {
			return l.broken(ctx, answer, used, err)
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
			return reason, l.keep(ctx, t)
		}
		if reason, err := l.act(ctx, calls, t, emit); err != nil || reason != "" {
			return reason, err
		}
	}
	return MaxIterations, nil
}

// act calls the tools of a turn, keeps the turn, and says whether the run ends with it.
func (l *loop) act(ctx context.Context, calls []*model.Block, t turn, emit Emit) (StopReason, error) {
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
	if err := l.keep(ctx, t); err != nil {
		return "", err
	}
	d.finish()
	l.calls = append(l.calls, t.calls...)
	l.messages = append(l.messages, t.messages...)
	return reason, nil
}

// broken keeps what was said until a call failed, or until the person left.
func (l *loop) broken(ctx context.Context, answer model.Answer, used core.Usage, err error) (StopReason, error) {
	t, left := turn{text: answer.Text(), used: used}, ctx.Err() != nil
	if left {
		t.stopped = Cancelled
	}
	if t.text != "" {
		t.messages = []model.Message{model.Said(model.Assistant, t.text)}
	}
	if t.text != "" || used.InputTokens+used.OutputTokens > 0 {
		l.totals.add(used)
		if failed := l.keep(ctx, t); failed != nil && core.CodeOf(failed) != core.CodeNotFound {
			return "", errors.Join(failed, err)
		}
	}
	if left {
		err = nil // the person's leaving is no failure
	}
	return t.stopped, err
}

// ask calls the model once.
func (l *loop) ask(ctx context.Context, emit Emit) (model.Answer, core.Usage, error) {
	start := time.Now()
	r := model.Request{System: l.system, Messages: l.messages, Tools: l.offer.tools(), MaxTokens: l.llm.models.maxOutput}
	if l.offer.partial() {
		r.System = append(r.System[:len(r.System):len(r.System)], partialNote)
	}
	before := ""
	if len(l.texts) > 0 {
		before = between
	}
	answer, err := model.Call(ctx, l.llm.calls, l.llm.name, r,
		func(text string) {
			emit(Event{EventText, textDelta{RunID: l.runID, Text: before + text}})
			before = ""
		},
		func(e *model.Error, pause time.Duration) {
			l.e.log.Info("A model did not answer and is asked again after a while", "model", l.llm.full, "status", e.Status, "pause", pause.Round(time.Millisecond), "error", e)
		})
	tidy(&answer)
	return answer, l.llm.usage(l.caller, answer.Usage, start), err
}

// usage is what one call used, at its price.
func (c chosen) usage(by core.Caller, u model.Usage, start time.Time) core.Usage {
	return core.Usage{
		Workspace: by.Workspace.ID, User: by.User.ID, Model: c.full, At: start, LLM: time.Since(start),
		InputTokens: u.Input, OutputTokens: u.Output, CacheReadTokens: u.CacheRead, CacheWriteTokens: u.CacheWrite,
		CostUSD: c.models.prices.Cost(c.full, u),
	}
}

// tidy gives calls without an id one, since some servers send none.
func tidy(a *model.Answer) {
	for i := range a.Blocks {
		if b := &a.Blocks[i]; b.Kind == model.ToolUse {
			b.ID = cmp.Or(b.ID, newID("call_"))
		}
	}
}

// toolUses are the calls of tools that an answer asks for.
func toolUses(a model.Answer) (calls []*model.Block) {
	for i := range a.Blocks {
		if a.Blocks[i].Kind == model.ToolUse {
			calls = append(calls, &a.Blocks[i])
		}
	}
	return calls
}

// badInput is what a model gave for arguments that are not JSON: a conversation cannot hold it.
type badInput string

func takeBadInput(b *model.Block) (badInput, bool) {
	if json.Valid(b.Input) {
		return "", false
	}
	bad := badInput(b.Input)
	b.Input = json.RawMessage("{}")
	return bad, true
}
