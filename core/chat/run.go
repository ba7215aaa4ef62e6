package chat

import (
	"context"
	"encoding/json"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat/claim"
	"github.com/ropewalk/ropewalk/core/chat/elicit"
	"github.com/ropewalk/ropewalk/core/chat/model"
	"github.com/ropewalk/ropewalk/core/chat/replay"
	"github.com/ropewalk/ropewalk/core/chat/skill"
	"github.com/ropewalk/ropewalk/core/tracing"
)

// storeTimeout is how long storing a part of a conversation may take. It is stored also when the person
// has left.
const storeTimeout = 10 * time.Second

// Run is one run that was admitted: its message is stored, and the conversation is claimed until Do
// returns.
type Run struct {
	e        *Engine
	id       string
	ref      core.ConversationRef
	claim    *claim.Claim
	loop     *loop
	skill    *string
	untitled bool // the conversation has no title yet
	message  string
	appended bool // a turn of this run is stored already
}

// Begin admits a run: core.CodeBadRequest when the request is invalid, core.CodeNotFound without the
// conversation, core.CodeRunInProgress while another run goes on in it, core.CodeModelNotConfigured
// without a model. When it returns, the person's message is stored.
func (e *Engine) Begin(ctx context.Context, c core.Caller, r Request) (*Run, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	if err := e.allowAttachments(r.Attachments); err != nil {
		return nil, err
	}
	if r.ConversationID == "" {
		return e.beginNew(ctx, c, r)
	}
	ref := c.Conversation(r.ConversationID)
	if _, err := e.store.Conversation(ctx, ref); err != nil {
		return nil, err
	}
	claimed, err := e.claims.Acquire(ctx, ref)
	if err != nil {
		return nil, err
	}
	llm, err := e.selectModel(ctx, r.Model)
	var known core.Conversation
	if err == nil {
		known, err = e.store.Conversation(ctx, ref)
	}
	var run *Run
	if err == nil {
		run, err = e.admit(ctx, c, r, known, claimed, llm)
	}
	if err != nil {
		claimed.Release()
		return nil, err
	}
	return run, nil
}

func (e *Engine) beginNew(ctx context.Context, c core.Caller, r Request) (*Run, error) {
	llm, err := e.selectModel(ctx, r.Model)
	if err != nil {
		return nil, err
	}
	created, err := e.store.CreateConversation(ctx, core.Conversation{Workspace: c.Workspace.ID, Owner: c.User.ID, Metadata: r.Metadata})
	if err != nil {
		return nil, err
	}
	claimed, err := e.claims.Acquire(ctx, c.Conversation(created.ID))
	if err != nil {
		return nil, err
	}
	run, err := e.admit(ctx, c, r, created, claimed, llm)
	if err != nil {
		claimed.Release()
		return nil, err
	}
	return run, nil
}

// admit reads the earlier messages, and stores the new one.
func (e *Engine) admit(ctx context.Context, c core.Caller, r Request, in core.Conversation, claimed *claim.Claim, llm selected) (*Run, error) {
	ref := c.Conversation(in.ID)
	before, err := e.store.Messages(ctx, ref)
	if err != nil {
		return nil, err
	}
	earlier := replay.Messages(before)
	if err := e.loadAttachments(ctx, ref, earlier); err != nil {
		return nil, err
	}
	stored, said, err := userMessage(in.ID, r)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	stored.Timestamp = now
	if _, err := e.store.AppendMessages(ctx, ref, []core.Message{stored}); err != nil {
		return nil, err
	}
	skills := e.skills.Skills(c.Workspace.ID)
	picked := skill.Match(skills, r.Message)
	run := &Run{e: e, id: core.RandomID("run_"), ref: ref, claim: claimed, untitled: in.Title == "", message: r.Message}
	if picked != nil {
		run.skill = &picked.Name
	}
	run.loop = &loop{
		e: e, caller: c, llm: llm, runID: run.id, conversation: in.ID, limit: r.iterations(), totals: &tally{},
		messages: replay.Append(earlier, said),
		system:   systemPrompt(c, skills, picked, r.AppContext, now),
		toolset:  newToolset(e.tools, c, allowlistOf(r.AllowedTools, picked, r.server()), r.server(), picked, before),
		store:    run.storeTurn,
	}
	return run, nil
}

// Do runs until the model has nothing more to do, and passes the events to emit: chat.start first, then
// done or error last. When ctx ends, so does the run, with what was said so far and the reason cancelled.
// A nil emit is for a client that sees nothing before the answer: the questions of apps are declined at
// once. The errors are core.Errors.
func (r *Run) Do(ctx context.Context, emit Emit) (Answer, error) {
	defer r.claim.Release()
	ctx, ok := r.claim.Start(ctx)
	if !ok {
		return Answer{}, core.Errorf(core.CodeUnavailable, "the run was not started in time")
	}
	session := r.e.questions.Open(r.loop.caller, r.ref.ID, r.id, emitElicitation(emit))
	defer session.Close(ctx)
	r.loop.session = session
	if emit == nil {
		emit = func(Event) {}
	}
	began := time.Now()
	emit(Event{EventStart, runStarted{ConversationID: r.ref.ID, RunID: r.id}})
	ctx, span := tracing.StartAgent(ctx, r.ref.ID, r.loop.llm.name)
	reason, err := r.loop.run(ctx, emit)
	span.End(err)
	session.Close(ctx)
	if core.CodeOf(err) == core.CodeNotFound { // deleted meanwhile, through another server
		reason, err = Cancelled, nil
	}
	if err != nil {
		r.e.metrics.ChatRun("failed", time.Since(began))
		failure := r.e.failure(r.loop.caller, r.loop.llm, err)
		r.claim.Release()
		emit(Event{EventError, failedEvent(failure)})
		return Answer{}, failure
	}
	r.e.metrics.ChatRun(string(reason), time.Since(began))
	answer := r.answer(reason)
	if r.untitled && reason != Cancelled {
		r.e.startTitle(r.loop.caller, r.ref, r.message, answer.Response)
	}
	r.claim.Release() // a client that sees done may send the next message at once
	emit(Event{EventDone, answer})
	return answer, nil
}

// emitElicitation passes the events about questions on; nil for nil.
func emitElicitation(emit Emit) elicit.Emit {
	if emit == nil {
		return nil
	}
	return func(name string, data any) { emit(Event{Name: name, Data: data}) }
}

func (r *Run) answer(reason StopReason) Answer {
	usage := r.loop.totals.total(r.loop.llm.full, r.loop.iterations)
	return Answer{
		Response: r.loop.response(), ConversationID: r.ref.ID, WorkspaceID: r.ref.Workspace, SkillName: r.skill,
		ToolCalls: append([]ToolCall{}, r.loop.calls...), InputTokens: usage.InputTokens, OutputTokens: usage.OutputTokens,
		StopReason: reason, Usage: usage,
	}
}

// storeTurn stores a turn of the model and the results of its tools. The turns of a run are one message:
// the first begins it, the others continue it.
func (r *Run) storeTurn(ctx context.Context, t turn) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	if len(t.messages) == 0 {
		_, err := r.e.store.AppendMessages(ctx, r.ref, nil, t.used)
		return err
	}
	blocks, err := json.Marshal(t.messages)
	if err != nil {
		return err
	}
	metadata, err := json.Marshal(messageMetadata{
		Skill: r.skill, ToolCalls: append([]ToolCall{}, t.calls...), InputTokens: t.used.InputTokens, OutputTokens: t.used.OutputTokens,
		CostUSD: t.used.CostUSD, Model: t.used.Model, LLMMs: t.used.LLM.Milliseconds(), Iterations: 1, StopReason: t.stopped,
	})
	if err != nil {
		return err
	}
	_, err = r.e.store.AppendMessages(ctx, r.ref, []core.Message{{
		Role: string(model.Assistant), Content: t.text, Blocks: blocks, Metadata: metadata, Timestamp: time.Now(), Continues: r.appended,
	}}, t.used)
	r.appended = r.appended || err == nil
	return err
}

// Abandon gives the run up before Do was called. The person's message stays stored.
func (r *Run) Abandon() { r.claim.Release() }
