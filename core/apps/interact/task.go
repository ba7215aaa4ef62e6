package interact

import (
	"context"
	"encoding/json"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// These are the pauses between two polls of a task. An app can suggest one (pollInterval), which is clamped to
// the limits.
const (
	defaultPoll = time.Second
	minPoll     = 50 * time.Millisecond
	maxPoll     = 30 * time.Second
)

// cancelTimeout limits how long an app may take to accept that a task is cancelled.
const cancelTimeout = 5 * time.Second

// task is a task that an app created (MCP 2025-11-25, basic/utilities/tasks).
type task struct {
	ID            string  `json:"taskId"`
	Status        string  `json:"status"`
	StatusMessage string  `json:"statusMessage"`
	PollInterval  float64 `json:"pollInterval"` // milliseconds
}

// isPending reports whether the task is still running and needs nothing from the client. In all other states,
// tasks/result either has the result or blocks until it does.
func (t task) isPending() bool { return t.Status == "working" || t.Status == "submitted" }

func (t task) poll() time.Duration {
	if t.PollInterval <= 0 {
		return defaultPoll
	}
	return min(max(time.Duration(min(t.PollInterval, float64(maxPoll.Milliseconds())))*time.Millisecond, minPoll), maxPoll)
}

// sendAsTask calls a tool that can only be called as a task. To the caller it looks like an ordinary call.
func (c *Call) sendAsTask(in instance.Instance, r link.Request) (json.RawMessage, error) {
	created, err := createTask(c.ctx, in, r)
	if err != nil || created.Task == nil {
		return created.raw, err
	}
	run := taskRun{in: in, request: r, call: c, task: *created.Task, token: progressTokenOf(r.Params)}
	result, err := run.wait(c.ctx)
	if c.ctx.Err() != nil {
		run.cancel(context.WithoutCancel(c.ctx))
	}
	return result, err
}

// createdTask is the result of a request to create a task. Task is nil if the app returned an ordinary result.
type createdTask struct {
	Task *task `json:"task"`
	raw  json.RawMessage
}

func createTask(ctx context.Context, in instance.Instance, r link.Request) (createdTask, error) {
	params := r.Params
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	var err error
	if r.Params, err = rawjson.Set(params, rawjson.Member{Name: "task", Value: json.RawMessage("{}")}); err != nil {
		return createdTask{}, core.Wrap(core.CodeBadRequest, err, link.ErrParams.Error())
	}
	raw, err := in.Call(ctx, r)
	if err != nil {
		return createdTask{}, err
	}
	created := createdTask{raw: raw}
	if err := json.Unmarshal(raw, &created); err != nil || created.Task != nil && created.Task.ID == "" {
		return createdTask{}, &rpc.Error{Code: rpc.CodeInternalError, Message: "the app sent an invalid task"}
	}
	return created, nil
}

// taskRun is a call that runs as a task.
type taskRun struct {
	in       instance.Instance
	request  link.Request
	call     *Call
	task     task
	token    json.RawMessage // the caller's progress token; nil for none
	reported int             // progress notifications sent
}

// wait polls the task until it has ended or needs input, and returns its result. Each response to a poll resets
// the call's clock.
func (t *taskRun) wait(ctx context.Context) (json.RawMessage, error) {
	t.report("")
	for t.task.isPending() {
		timer := time.NewTimer(t.task.poll())
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, context.Cause(ctx)
		}
		before := t.task.StatusMessage
		raw, err := t.send(ctx, "tasks/get")
		if err != nil {
			return nil, err
		}
		t.call.resetClock()
		next := task{}
		if err := json.Unmarshal(raw, &next); err != nil || next.Status == "" {
			return nil, &rpc.Error{Code: rpc.CodeInternalError, Message: "the app sent an invalid task"}
		}
		next.ID = t.task.ID
		t.task = next
		t.report(before)
	}
	if t.task.Status == "cancelled" {
		return nil, &rpc.Error{Code: rpc.CodeInternalError, Message: "the app cancelled the call's task: " + t.task.StatusMessage}
	}
	return t.send(ctx, "tasks/result")
}

// report sends the task's status message as progress if it has changed and the caller asked for progress.
func (t *taskRun) report(before string) {
	if t.token == nil || t.request.Notify == nil || t.task.StatusMessage == before || t.task.StatusMessage == "" {
		return
	}
	t.reported++
	params, err := json.Marshal(map[string]any{"progressToken": t.token, "progress": t.reported, "message": t.task.StatusMessage})
	if err == nil {
		t.request.Notify(rpc.Notification{Method: "notifications/progress", Params: params})
	}
}

func (t *taskRun) send(ctx context.Context, method string) (json.RawMessage, error) {
	params, err := json.Marshal(map[string]string{"taskId": t.task.ID})
	if err != nil {
		return nil, err
	}
	return t.in.Call(ctx, link.Request{Method: method, Params: params, Notify: t.request.Notify, Caller: t.call})
}

// cancel cancels the task of a call that has ended. Errors are ignored because the task may have ended already.
func (t *taskRun) cancel(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, cancelTimeout)
	defer stop()
	_, _ = t.send(ctx, "tasks/cancel")
}

// progressTokenOf returns the progress token of a request; nil for none.
func progressTokenOf(params json.RawMessage) json.RawMessage {
	var p struct {
		Meta struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	if json.Unmarshal(params, &p) != nil || len(p.Meta.Token) == 0 {
		return nil
	}
	return p.Meta.Token
}
