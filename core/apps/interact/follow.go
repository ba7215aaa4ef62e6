package interact

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// ErrKeepTask is the cancellation cause of a call whose task continues in the app, because this server or a peer server
// will poll it again.
var ErrKeepTask = errors.New("the server is shutting down")

// Follow lets an app answer a tool call with its own task (MCP extension io.modelcontextprotocol/tasks). The call
// then lasts until the task has ended, and returns its result.
type Follow struct {
	ID string // a task that the app created earlier: the call sends nothing and only waits for the task; "" for none
	// Changed is called with the state of the task, first when the app has created it. It must not
	// block, and may change the state.
	Changed func(FollowedTask)
	// Responses receives the client's responses to the input requests of the task, by key.
	Responses <-chan map[string]json.RawMessage
	// Unsent is called with responses that could not be sent to the app.
	Unsent func(map[string]json.RawMessage)
}

// FollowedTask is the state of an app's task that has not ended.
type FollowedTask struct {
	ID            string
	Message       string
	InputRequests map[string]json.RawMessage // by key; none unless the task waits for input
}

// followedTask is a task as the app describes it.
type followedTask struct {
	ID            string                     `json:"taskId"`
	Status        string                     `json:"status"`
	StatusMessage string                     `json:"statusMessage"`
	PollInterval  float64                    `json:"pollIntervalMs"`
	InputRequests map[string]json.RawMessage `json:"inputRequests"`
	Result        json.RawMessage            `json:"result"`
	Error         *rpc.Error                 `json:"error"`
}

// sendFollowed makes a call that the app may answer with a task.
func (c *Call) sendFollowed(in instance.Instance, r link.Request) (json.RawMessage, error) {
	t := follower{in: in, call: c, capabilities: requestCapabilities(r.Params)}
	if c.Follow.ID != "" {
		t.task = followedTask{ID: c.Follow.ID, Status: "working"}
		if err := t.poll(c.ctx); err != nil {
			t.abandon(c.ctx)
			return nil, err
		}
		return t.wait(c.ctx)
	}
	raw, err := in.Call(c.ctx, r)
	if err != nil || !bytes.Contains(raw, []byte(`"task"`)) || resultType(raw) != "task" {
		return raw, err
	}
	if json.Unmarshal(raw, &t.task) != nil || t.task.ID == "" {
		return nil, errInvalidTask()
	}
	t.task.InputRequests = nil // only responses to tasks/get contain input requests
	return t.wait(c.ctx)
}

// resultType returns the resultType of a result, or "" if it has none.
func resultType(result json.RawMessage) string {
	at, err := rawjson.Find(result, "resultType")
	if err != nil || at.Empty() {
		return ""
	}
	return rawjson.Text(at.In(result))
}

func errInvalidTask() error {
	return &rpc.Error{Code: rpc.CodeInternalError, Message: "the app sent an invalid task"}
}

type follower struct {
	in           instance.Instance
	call         *Call
	capabilities json.RawMessage // the client capabilities that the call declared
	task         followedTask
}

// wait polls the task until it has ended, and returns its result. If the call is cancelled, so is the task.
func (t *follower) wait(ctx context.Context) (json.RawMessage, error) {
	for {
		switch t.task.Status {
		case "completed":
			if kind := resultType(t.task.Result); len(t.task.Result) == 0 || t.task.Result[0] != '{' || kind == "task" || kind == "input_required" {
				return nil, errInvalidTask()
			}
			return t.task.Result, nil
		case "failed":
			if t.task.Error == nil {
				return nil, errInvalidTask()
			}
			return nil, t.task.Error
		case "cancelled":
			return nil, &rpc.Error{Code: rpc.CodeInternalError, Message: "the app cancelled the call's task: " + t.task.StatusMessage}
		case "working", "input_required":
		default:
			return nil, errInvalidTask()
		}
		t.report()
		if err := t.pause(ctx); err != nil {
			t.abandon(ctx)
			return nil, err
		}
	}
}

// report passes on the state of the task.
func (t *follower) report() {
	state := FollowedTask{ID: t.task.ID, Message: t.task.StatusMessage, InputRequests: map[string]json.RawMessage{}}
	if t.task.Status == "input_required" {
		maps.Copy(state.InputRequests, t.task.InputRequests)
	}
	t.call.Follow.Changed(state)
}

// pause waits until it is time to poll the task again, and polls it. Responses from the client end the wait.
func (t *follower) pause(ctx context.Context) error {
	timer := time.NewTimer(task{PollInterval: t.task.PollInterval}.poll())
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case responses := <-t.call.Follow.Responses:
		if _, err := t.send(ctx, "tasks/update", map[string]any{"taskId": t.task.ID, "inputResponses": responses}); err != nil {
			t.call.Follow.Unsent(responses)
			return err
		}
	case <-timer.C:
	}
	return t.poll(ctx)
}

// poll gets the task's current state. Each response resets the call's clock.
func (t *follower) poll(ctx context.Context) error {
	raw, err := t.send(ctx, "tasks/get", map[string]any{"taskId": t.task.ID})
	if err != nil {
		return err
	}
	t.call.resetClock()
	next := followedTask{}
	if err := json.Unmarshal(raw, &next); err != nil {
		return errInvalidTask()
	}
	next.ID = t.task.ID
	t.task = next
	return nil
}

func (t *follower) send(ctx context.Context, method string, params map[string]any) (json.RawMessage, error) {
	encoded, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	capabilities := t.capabilities
	if len(capabilities) == 0 { // the server polls the task of an earlier call
		capabilities = json.RawMessage(`{"extensions":{"` + TasksExtension + `":{}}}`)
	}
	return t.in.Call(ctx, link.Request{Method: method, Target: t.task.ID, Params: encoded, Notify: t.call.withClock(t.call.Notify), Caller: t.call, Capabilities: capabilities})
}

// abandon cancels the task if the call was cancelled. If the app was silent for too long, its task continues, because
// the server polls it again.
func (t *follower) abandon(ctx context.Context) {
	if cause := context.Cause(ctx); ctx.Err() != nil && !errors.Is(cause, ErrKeepTask) && !errors.Is(cause, ErrTimeout) {
		t.cancel(context.WithoutCancel(ctx))
	}
}

// cancel cancels the task. Errors are ignored because the task may have ended already.
func (t *follower) cancel(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, cancelTimeout)
	defer stop()
	_, _ = t.send(ctx, "tasks/cancel", map[string]any{"taskId": t.task.ID})
}

// TasksExtension is the name of the MCP extension that allows results to be tasks.
const TasksExtension = "io.modelcontextprotocol/tasks"
