package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"runtime/debug"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/core"

	"github.com/ropewalk/ropewalk/core/chat/elicit"
	"github.com/ropewalk/ropewalk/core/chat/model"
	"github.com/ropewalk/ropewalk/core/rawjson"

	"github.com/ropewalk/ropewalk/core/chat/skill"
	"github.com/ropewalk/ropewalk/core/tracing"
)

// storeTimeout limits each write to the store. Writes do not end with the run's context, so that the messages are
// stored even after the client has disconnected.
const storeTimeout = 10 * time.Second

// Run is a run that was admitted: its message is stored, and the conversation is claimed until Do returns.
type Run struct {
	e        *Engine
	id       string
	ref      core.ConversationRef
	claim    *claim
	loop     *loop
	skill    *string
	untitled bool // the conversation has no title yet
	message  string
	appended bool // a turn of this run is already stored
}

// Begin admits a run. The error is core.CodeBadRequest if the request is invalid, core.CodeNotFound if the
// conversation does not exist, core.CodeRunInProgress while another run is active in it, and
// core.CodeModelNotConfigured if there is no usable model. When Begin returns without an error, the person's message
// is stored.
func (e *Engine) Begin(ctx context.Context, c core.Caller, r Request) (*Run, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	if err := e.allowAttachments(r.Attachments); err != nil {
		return nil, err
	}
	ref, err := e.conversationOf(ctx, c, r)
	if err != nil {
		return nil, err
	}
	var run *Run
	err = e.claims.Acquire(ctx, ref, func(claimed *claim) (err error) {
		run, err = e.admit(ctx, c, r, ref, claimed)
		return err
	})
	return run, err
}

// conversationOf returns the conversation for a request. It creates one if the request does not specify one.
func (e *Engine) conversationOf(ctx context.Context, c core.Caller, r Request) (core.ConversationRef, error) {
	if r.ConversationID != "" {
		_, err := e.store.Conversation(ctx, c.Conversation(r.ConversationID))
		return c.Conversation(r.ConversationID), err
	}
	if _, err := e.selectModel(ctx, r.Model); err != nil {
		return core.ConversationRef{}, err
	}
	created, err := e.store.CreateConversation(ctx, core.Conversation{Workspace: c.Workspace.ID, Owner: c.User.ID, Metadata: r.Metadata, DisabledApps: r.DisabledApps})
	return c.Conversation(created.ID), err
}

// admit reads the earlier messages, stores the new one, and prepares the run.
func (e *Engine) admit(ctx context.Context, c core.Caller, r Request, ref core.ConversationRef, claimed *claim) (*Run, error) {
	llm, err := e.selectModel(ctx, r.Model)
	if err != nil {
		return nil, err
	}
	in, err := e.store.Conversation(ctx, ref)
	if err != nil {
		return nil, err
	}
	if r.DisabledApps != nil && !slices.Equal(r.DisabledApps, in.DisabledApps) {
		if in, err = e.store.UpdateConversation(ctx, ref, core.ConversationPatch{DisabledApps: r.DisabledApps}); err != nil {
			return nil, err
		}
	}
	instructions, err := e.Instructions(ctx, c)
	if err != nil {
		return nil, err
	}
	before, err := e.store.Messages(ctx, ref)
	if err != nil {
		return nil, err
	}
	earlier := storedAsRequest(before)
	if err := e.loadAttachments(ctx, ref, earlier); err != nil {
		return nil, err
	}
	stored, sent, err := userMessage(in.ID, r)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	stored.Timestamp, stored.Queued = now, r.queued
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
		e: e, caller: c, llm: llm, effort: r.Effort, runID: run.id, conversation: in.ID, limit: r.iterations(), totals: &tally{},
		messages: appendMessage(earlier, sent),
		system:   systemPrompt(c, instructions, skills, picked, r.AppContext, now),
		toolset:  e.newToolset(e.tools, c, allowlistOf(r.AllowedTools, picked, r.server()), in.DisabledApps, r.server(), picked, before),
		store:    run.storeTurn,
		save:     run.saveTurn,
	}
	return run, nil
}

// Guard sets a check that is called before each model call and each tool call, and returns the caller with their
// current rights. If the check returns an error, the run ends. The error's message must be a sentence that explains
// why.
func (r *Run) Guard(check func(context.Context) (core.Caller, error)) { r.loop.guard = check }

// Do runs until the model has nothing more to do. It passes the events to emit: chat.start first, and done or error
// last. If ctx ends, the run ends with the text so far and the stop reason Cancelled, or Incomplete if the server is
// shutting down. A nil emit is for a client that sees nothing before the answer: app questions are then declined
// immediately. The errors are core.Errors.
func (r *Run) Do(ctx context.Context, emit Emit) (Answer, error) {
	answer, last, err := r.whileClaimed(ctx, emit)
	if emit != nil && last.Name != "" {
		emit(last) // the client may now send its next message
	}
	return answer, err
}

// whileClaimed is like Do, but returns the last event instead of sending it. The conversation is free when it returns.
func (r *Run) whileClaimed(ctx context.Context, emit Emit) (answer Answer, last Event, err error) {
	defer r.Abandon()
	defer func() {
		if p := recover(); p != nil { // a panic in one run must not end the server and its other runs
			r.e.log.Error("chat run panicked", "conversation", r.ref.ID, "panic", p, "stack", string(debug.Stack()))
			failure := core.Errorf(core.CodeEngineError, "the server failed to run the chat; the reason is in its log")
			answer, last, err = Answer{}, Event{EventError, failedEvent(failure)}, failure
			r.storeBroken(ctx, failure)
		}
	}()
	ctx, ok := r.claim.Start(ctx)
	if !ok {
		return Answer{}, Event{}, core.Errorf(core.CodeUnavailable, "the run was not started in time")
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
	if core.CodeOf(err) == core.CodeNotFound { // the conversation was deleted through another server
		reason, err = Cancelled, nil
	}
	if err != nil {
		r.e.metrics.ChatRun("failed", time.Since(began))
		failure := r.e.failure(r.loop.caller, r.loop.llm, err)
		return Answer{}, Event{EventError, failedEvent(failure)}, failure
	}
	r.e.metrics.ChatRun(string(reason), time.Since(began))
	answer = r.answer(reason)
	if r.untitled && reason != Cancelled && reason != Incomplete {
		r.e.startTitle(r.loop.caller, r.ref, r.message, answer.Response)
	}
	return answer, Event{EventDone, answer}, nil
}

// storeBroken stores what the current turn produced before the server failed, and why it ended.
func (r *Run) storeBroken(ctx context.Context, failure *core.Error) {
	defer func() {
		if p := recover(); p != nil { // perhaps the store panicked before
			r.e.log.Error("could not store part of an answer", "conversation", r.ref.ID, "panic", p)
		}
	}()
	var t turn
	if r.loop.turn != nil {
		if open, ok := r.loop.turn.end(); ok {
			t = open
		}
	}
	t.stop(Incomplete, failure.Message)
	if err := r.storeTurn(ctx, t); err != nil {
		r.e.log.Warn("could not store part of an answer", "conversation", r.ref.ID, "error", err)
	}
}

// emitElicitation returns an elicit.Emit that passes events to emit, or nil if emit is nil.
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
		StopReason: reason, StopMessage: r.loop.stopMessage(reason), Usage: usage,
	}
}

// storeTurn stores a turn of the model with its tool results. All turns of a run form one message: the first starts
// it, the others continue it.
func (r *Run) storeTurn(ctx context.Context, t turn) error {
	if r.loop.turn != nil {
		r.loop.turn.end()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	if len(t.messages) == 0 && t.summary == nil {
		_, err := r.e.store.AppendMessages(ctx, r.ref, nil, t.usage()...)
		return err
	}
	stored, err := r.stored(t)
	if err != nil {
		return err
	}
	_, err = r.e.store.AppendMessages(ctx, r.ref, []core.Message{stored}, t.usage()...)
	r.appended = r.appended || err == nil
	return err
}

// Abandon frees the conversation of a run for which Do is not called. The person's message is kept.
func (r *Run) Abandon() { r.claim.Release() }

// saveTurn saves an unfinished turn in case the server is killed. A nil turn removes the saved one.
func (r *Run) saveTurn(ctx context.Context, t *turn) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	var m *core.Message
	if t != nil {
		t.stopMessage = r.loop.stopMessage(t.stopped)
		stored, err := r.stored(*t)
		if err != nil {
			return // do not save an incomplete turn
		}
		m = &stored
	}
	if err := r.e.store.SaveUnfinished(ctx, r.ref, m); err != nil && core.CodeOf(err) != core.CodeNotFound {
		r.e.log.Warn("could not save part of an answer; the run continues", "conversation", r.ref.ID, "error", err)
	}
}

// withSummary returns the messages of a turn, with its summary in front.
func (t turn) withSummary() []model.Message {
	if t.summary == nil {
		return t.messages
	}
	all := append([]model.Message{{Role: model.Assistant, Blocks: []model.Block{*t.summary}}}, t.messages...)
	if len(t.messages) > 0 && t.messages[0].Role == model.Assistant {
		all = all[1:]
		all[0].Blocks = append([]model.Block{*t.summary}, all[0].Blocks...)
	}
	return all
}

// stored returns a turn as a stored message.
func (r *Run) stored(t turn) (core.Message, error) {
	blocks, err := rawjson.Encode(t.withSummary())
	if err != nil {
		return core.Message{}, err
	}
	m := messageMetadata{
		Skill: r.skill, ToolCalls: append([]ToolCall{}, t.calls...), Model: cmp.Or(t.used.Model, r.loop.llm.full),
		LLMMs: t.used.LLM.Milliseconds(), StopReason: t.stopped, StopMessage: t.stopMessage,
	}
	if t.used.LLM > 0 { // else the run ended before it called the model
		m.Iterations = 1
	}
	if t.hasUsage() {
		m.InputTokens, m.OutputTokens, m.CostUSD = &t.used.InputTokens, &t.used.OutputTokens, t.used.CostUSD
	}
	metadata, err := json.Marshal(m)
	return core.Message{
		Role: string(model.Assistant), Content: t.text, Blocks: blocks, Metadata: metadata, Timestamp: time.Now(), Continues: r.appended,
	}, err
}
