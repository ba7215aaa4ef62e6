package chat

import (
	"context"
	"encoding/json"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat/model"
	"github.com/ropewalk/ropewalk/core/chat/skill"
)

// keepTimeout is how long keeping a part of a conversation may take. What was said is kept also
// when the person has left.
const keepTimeout = 10 * time.Second

// Run is one run that was admitted: its message is kept, its conversation is its own until Do
// returns.
type Run struct {
	e     *Engine
	id    string
	ref   core.ConversationRef
	slot  *slot
	loop  *loop
	skill *string
	title bool // the conversation has none yet
	said  string
}

// Begin admits a run: core.CodeBadRequest when the request is wrong, core.CodeNotFound without the
// conversation, core.CodeRunInProgress while another run goes on in it,
// core.CodeModelNotConfigured without a model. When it returns, the person's message is kept.
func (e *Engine) Begin(ctx context.Context, c core.Caller, r Request) (*Run, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	if r.ConversationID == "" {
		return e.beginNew(ctx, c, r)
	}
	ref := c.Conversation(r.ConversationID)
	if _, err := e.store.Conversation(ctx, ref); err != nil {
		return nil, err
	}
	place, err := e.take(ctx, ref)
	if err != nil {
		return nil, err
	}
	llm, err := e.choose(ctx, r.Model)
	var known core.Conversation
	if err == nil {
		known, err = e.store.Conversation(ctx, ref)
	}
	var run *Run
	if err == nil {
		run, err = e.admit(ctx, c, r, known, place, llm)
	}
	if err != nil {
		place.free()
		return nil, err
	}
	return run, nil
}

func (e *Engine) beginNew(ctx context.Context, c core.Caller, r Request) (*Run, error) {
	llm, err := e.choose(ctx, r.Model)
	if err != nil {
		return nil, err
	}
	made, err := e.store.CreateConversation(ctx, core.Conversation{Workspace: c.Workspace.ID, Owner: c.User.ID, Metadata: r.Metadata})
	if err != nil {
		return nil, err
	}
	place, err := e.take(ctx, c.Conversation(made.ID))
	if err != nil {
		return nil, err
	}
	run, err := e.admit(ctx, c, r, made, place, llm)
	if err != nil {
		place.free()
		return nil, err
	}
	return run, nil
}

// admit reads what was said before, and keeps what is said now.
func (e *Engine) admit(ctx context.Context, c core.Caller, r Request, in core.Conversation, place *slot, llm chosen) (*Run, error) {
	ref := c.Conversation(in.ID)
	before, err := e.store.Messages(ctx, ref)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	if _, err := e.store.AppendMessages(ctx, ref, []core.Message{{Role: string(model.User), Content: r.Message, Timestamp: now}}); err != nil {
		return nil, err
	}
	skills := e.skills.Skills(c.Workspace.ID)
	picked := skill.Match(skills, r.Message)
	run := &Run{e: e, id: newID("run_"), ref: ref, slot: place, title: in.Title == "", said: r.Message}
	if picked != nil {
		run.skill = &picked.Name
	}
	run.loop = &loop{
		e: e, caller: c, llm: llm, runID: run.id, conversation: in.ID, most: r.iterations(), totals: &tally{},
		messages: append(replay(before), model.Said(model.User, r.Message)),
		system:   prompt(c, skills, picked, r.AppContext, now),
		offer:    newOffer(e.tools, c, allowance(r.AllowedTools, picked, r.server()), r.server(), picked, before),
		keep:     run.keep,
	}
	return run, nil
}

// Do runs until the model has nothing more to do, and tells emit what happens: chat.start first,
// then done or error last. When ctx ends, so does the run, with what was said so far and the reason
// cancelled. A nil emit is for a client that sees nothing before the answer: what apps ask is
// declined at once. The errors are core.Errors.
func (r *Run) Do(ctx context.Context, emit Emit) (Answer, error) {
	defer r.slot.free()
	ctx, ok := r.slot.start(ctx)
	if !ok {
		return Answer{}, core.Errorf(core.CodeUnavailable, "the run was not started in time")
	}
	asking := r.e.ask(r.loop.caller, r.ref.ID, r.id, emit)
	defer asking.close(ctx)
	r.loop.asking = asking
	if emit == nil {
		emit = func(Event) {}
	}
	emit(Event{EventStart, started{ConversationID: r.ref.ID, RunID: r.id}})
	reason, err := r.loop.run(ctx, emit)
	asking.close(ctx)
	if core.CodeOf(err) == core.CodeNotFound { // deleted meanwhile, through another server
		reason, err = Cancelled, nil
	}
	if err != nil {
		shown := r.e.failure(r.loop.llm, err)
		r.slot.free()
		emit(Event{EventError, told(shown)})
		return Answer{}, shown
	}
	answer := r.answer(reason)
	if r.title && reason != Cancelled {
		r.e.entitle(r.loop.caller, r.ref, r.said, answer.Response)
	}
	r.slot.free() // whoever sees done may go on at once
	emit(Event{EventDone, answer})
	return answer, nil
}

func (r *Run) answer(reason StopReason) Answer {
	usage := r.loop.totals.total(r.loop.llm.full, r.loop.iterations)
	return Answer{
		Response: r.loop.response(), ConversationID: r.ref.ID, WorkspaceID: r.ref.Workspace, SkillName: r.skill,
		ToolCalls: append([]ToolCall{}, r.loop.calls...), InputTokens: usage.InputTokens, OutputTokens: usage.OutputTokens,
		StopReason: reason, Usage: usage,
	}
}

// shown is a message's metadata (contract part 5).
type shown struct {
	Skill        *string    `json:"skill,omitempty"`
	ToolCalls    []ToolCall `json:"toolCalls"`
	InputTokens  int64      `json:"inputTokens"`
	OutputTokens int64      `json:"outputTokens"`
	CostUSD      *float64   `json:"costUsd"`
	Model        string     `json:"model"`
	LLMMs        int64      `json:"llmMs"`
	Iterations   int        `json:"iterations"`
	StopReason   StopReason `json:"stopReason,omitempty"` // when it is not complete
}

// keep keeps a turn of the model and what its tools answered as one message of the conversation.
func (r *Run) keep(ctx context.Context, t turn) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTimeout)
	defer cancel()
	if len(t.messages) == 0 {
		_, err := r.e.store.AppendMessages(ctx, r.ref, nil, t.used)
		return err
	}
	blocks, err := json.Marshal(t.messages)
	if err != nil {
		return err
	}
	metadata, err := json.Marshal(shown{
		Skill: r.skill, ToolCalls: append([]ToolCall{}, t.calls...), InputTokens: t.used.InputTokens, OutputTokens: t.used.OutputTokens,
		CostUSD: t.used.CostUSD, Model: t.used.Model, LLMMs: t.used.LLM.Milliseconds(), Iterations: 1, StopReason: t.stopped,
	})
	if err != nil {
		return err
	}
	_, err = r.e.store.AppendMessages(ctx, r.ref, []core.Message{{
		Role: string(model.Assistant), Content: t.text, Blocks: blocks, Metadata: metadata, Timestamp: time.Now(),
	}}, t.used)
	return err
}

// Abandon gives the run up before Do was called. What the person said is kept.
func (r *Run) Abandon() { r.slot.free() }
