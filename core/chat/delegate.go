package chat

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat/model"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/tools"
)

const (
	delegateTool       = "system__delegate"
	delegateIterations = 10
	delegateMost       = 25
	delegateTimeout    = 10 * time.Minute

	delegatePrompt = "You are working on one task for another assistant. Nobody will answer questions: do what you can, and say what you could not do. " +
		"The other assistant receives only your last message: put everything it needs into it."
)

// task is the tool call that a context belongs to.
type task struct {
	loop     *loop
	call     string
	progress func(message string, step float64)
}

type taskKey struct{}

func withTask(ctx context.Context, t *task) context.Context {
	return context.WithValue(ctx, taskKey{}, t)
}

func taskOf(ctx context.Context) *task {
	t, _ := ctx.Value(taskKey{}).(*task)
	return t
}

// Delegate returns system__delegate, which is available while the delegation flag is on. It starts a loop that does
// not see the conversation and may use the same tools as the calling run, except system__delegate.
func (e *Engine) Delegate() tools.System {
	return tools.System{
		Name: "delegate", Title: "Delegate a task", Requirement: core.Requirement{Flags: []string{config.FlagDelegation}},
		Description: "Gives one self-contained task to another assistant with the same tools, and returns its last message. " +
			"Use it for work that needs many tool calls with results that you do not need to see.",
		Schema: json.RawMessage(`{
  "type": "object",
  "properties": {
    "task": {"type": "string", "minLength": 1, "description": "what to do, with everything the other assistant must know"},
    "allowedTools": {"type": "array", "items": {"type": "string"}, "description": "patterns of the tools it may use, such as files__*; all if left out"},
    "maxIterations": {"type": "integer", "minimum": 1, "maximum": 25, "default": 10}
  },
  "required": ["task"],
  "additionalProperties": false
}`),
		Run: e.delegate,
	}
}

type delegation struct {
	Task          string   `json:"task"`
	AllowedTools  []string `json:"allowedTools"`
	MaxIterations int      `json:"maxIterations"`
}

func (e *Engine) delegate(ctx context.Context, c core.Caller, arguments json.RawMessage) (any, error) {
	in := delegation{MaxIterations: delegateIterations}
	if err := tools.Arguments(arguments, &in); err != nil {
		return nil, err
	}
	if err := checkGlobs("allowedTools", in.AllowedTools); err != nil {
		return nil, err
	}
	outer := taskOf(ctx)
	if outer != nil && outer.loop.depth > 0 {
		return nil, core.Errorf(core.CodeBadRequest, "a delegated task cannot delegate further; do it yourself")
	}
	if outer == nil { // outside a run, the delegated task itself is treated as a run
		release, err := e.AcquireRun(ctx, c)
		if err != nil {
			return nil, err
		}
		defer release()
	}
	ctx, cancel := context.WithTimeout(ctx, delegateTimeout)
	defer cancel()
	inner, err := e.newTask(ctx, c, in, outer)
	if err != nil {
		return nil, err
	}
	reason, err := inner.run(ctx, inner.reportTo(outer))
	if err != nil {
		return nil, e.failure(c, inner.llm, err)
	}
	last := ""
	if n := len(inner.texts); n > 0 {
		last = inner.texts[n-1]
	}
	return map[string]any{"answer": last, "stopReason": reason, "iterations": inner.iterations, "toolCalls": len(inner.calls)}, nil
}

// guardOf returns the guard for a task that was delegated from outside a run. Nothing else ends such a task when its
// caller loses a right. While the rights cannot be read, the task continues.
func (e *Engine) guardOf(c core.Caller) func(context.Context) (core.Caller, error) {
	if e.access == nil {
		return nil
	}
	return func(ctx context.Context) (core.Caller, error) {
		now, err := e.access.Current(ctx, c)
		switch code := core.CodeOf(err); {
		case err == nil && c.Outranks(now):
			return now, core.Errorf(core.CodeForbidden, "The task ended because your role changed.")
		case err == nil:
			return now, nil
		case code == core.CodeUnauthenticated || code == core.CodeWorkspaceDenied:
			return now, core.Wrap(code, err, "The task ended because you no longer have access.")
		}
		return c, nil
	}
}

// newTask creates the loop for a delegated task. It uses the delegating run's model and has no more rights than
// that run. Its usage counts toward that run.
func (e *Engine) newTask(ctx context.Context, c core.Caller, in delegation, outer *task) (*loop, error) {
	instructions, err := e.Instructions(ctx, c)
	if err != nil {
		return nil, err
	}
	l := &loop{
		e: e, caller: c, runID: core.RandomID("run_"), depth: 1, limit: min(in.MaxIterations, delegateMost), totals: &tally{},
		system:   append(systemPrompt(c, instructions, e.skills.Skills(c.Workspace.ID), nil, nil, time.Now()), delegatePrompt),
		messages: []model.Message{model.TextMessage(model.User, in.Task)},
	}
	allow, server, conversation := allowlistOf(in.AllowedTools, nil, ""), "", ""
	var disabled []string
	if outer == nil {
		if l.llm, err = e.selectModel(ctx, ""); err != nil {
			return nil, err
		}
		l.guard = e.guardOf(c)
	} else {
		l.llm, l.totals, conversation = outer.loop.llm, outer.loop.totals, outer.loop.conversation
		l.effort, l.guard = outer.loop.effort, outer.loop.guard
		l.session, l.within = outer.loop.session, outer.call
		allow, server = append(allow, outer.loop.toolset.allowed...), outer.loop.toolset.server
		disabled = outer.loop.toolset.disabled
	}
	l.toolset = e.newToolset(withoutDelegate{e.tools}, c, allow, disabled, server, nil, nil)
	l.store = func(ctx context.Context, t turn) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
		defer cancel()
		for _, used := range t.usage() {
			used.Conversation = conversation
			if err := e.store.PutUsage(ctx, used); err != nil {
				return err
			}
		}
		return nil
	}
	return l, nil
}

// reportTo returns an Emit that reports the tool calls of a delegated task as progress of the calling run.
func (l *loop) reportTo(outer *task) Emit {
	return func(ev Event) {
		start, ok := ev.Data.(toolStart)
		if ok && outer != nil {
			outer.progress("calls "+start.Name, float64(l.iterations))
		}
	}
}

// withoutDelegate is a Tools without system__delegate.
type withoutDelegate struct{ Tools }

func (w withoutDelegate) ListFor(c core.Caller, from tools.From) []tools.Listed {
	all := w.Tools.ListFor(c, from)
	kept := make([]tools.Listed, 0, len(all))
	for _, t := range all {
		if !strings.EqualFold(t.Name, delegateTool) {
			kept = append(kept, t)
		}
	}
	return kept
}
