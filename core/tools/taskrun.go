package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// taskRun is a call that is a task, or may become one.
type taskRun struct {
	n       *Namespace
	caller  core.Caller
	ctx     context.Context //nolint:containedctx // of the call: it outlives the client's request
	cancel  context.CancelCauseFunc
	outcome Outcome

	ended     chan callEnd                    // capacity 1
	created   chan struct{}                   // closed when the app has created a task
	changed   chan struct{}                   // capacity 1; signalled when task changes
	poked     chan struct{}                   // capacity 1
	responses chan map[string]json.RawMessage // for the app's task

	mu       sync.Mutex
	task     core.Task
	notify   func(rpc.Notification) // of the client's request, while there is one
	answered time.Time              // when the app last answered about its task
	taken    map[string]bool        // keys of input responses that were taken for the app, which never uses a key twice

	// Of the goroutine that drives the task.
	calling bool                       // the call has not returned
	call    Call                       // to repeat with the input that it asked for
	round   int                        // how often the call has asked for input
	state   json.RawMessage            // its requestState
	missing map[string]bool            // keys of input that it still needs
	input   map[string]json.RawMessage // what it has, by its own keys
}

// callEnd is what Namespace.call returned.
type callEnd struct {
	raw  json.RawMessage
	read callResult
	err  error
}

func (n *Namespace) newTaskRun(ctx context.Context, c core.Caller, task core.Task, outcome Outcome) *taskRun {
	task.Workspace, task.User, task.Key, task.Holder, task.Status = c.Workspace.ID, c.User.ID, c.Scope.Key, n.tasks.holder, core.TaskWorking
	t := &taskRun{
		n: n, caller: c, outcome: outcome, task: task, answered: time.Now(), taken: map[string]bool{}, ended: make(chan callEnd, 1), created: make(chan struct{}),
		changed: make(chan struct{}, 1), poked: make(chan struct{}, 1), responses: make(chan map[string]json.RawMessage, 1),
	}
	t.ctx, t.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	return t
}

// begin makes the call, or makes it again with the input that it asked for.
func (t *taskRun) begin(call Call) {
	t.calling = true
	t.n.tasks.group.Go(func() {
		for {
			raw, read, err := t.n.call(t.ctx, t.caller, call, t)
			if !t.asksAgain(err) {
				t.ended <- callEnd{raw, read, err}
				return
			}
		}
	})
}

// finished returns the end of a call that did not become a task.
func (t *taskRun) finished(end callEnd) (json.RawMessage, bool, error) {
	t.n.tasks.remove(t.task.ID)
	t.cancel(nil)
	return end.raw, end.read.isError, end.err
}

// forward passes a notification on to the client's request. A task has none.
func (t *taskRun) forward(n rpc.Notification) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.notify != nil {
		t.notify(n)
	}
}

// isApps reports whether the app has created a task for the call.
func (t *taskRun) isApps() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.task.AppTask != ""
}

// resolved records what the call calls. A nil taskRun is a call that cannot become a task.
func (t *taskRun) resolved(tool, account string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.task.Tool, t.task.Account = tool, account
}

// follow returns how the app's own task is followed; nil for a call that cannot become a task.
func (t *taskRun) follow() *interact.Follow {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return &interact.Follow{ID: t.task.AppTask, Changed: t.appTaskChanged, Responses: t.responses}
}

// appTaskChanged records the state of the app's task.
func (t *taskRun) appTaskChanged(state interact.FollowedTask) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.answered = time.Now()
	if t.task.AppTask == "" {
		close(t.created)
	}
	t.task.AppTask, t.task.Message, t.task.Status, t.task.Payload = state.ID, state.Message, core.TaskWorking, nil
	for key := range t.taken {
		delete(state.InputRequests, key)
	}
	if len(state.InputRequests) > 0 {
		if requests, err := json.Marshal(state.InputRequests); err == nil {
			t.task.Status, t.task.Payload = core.TaskInputRequired, requests
		}
	}
	signal(t.changed)
}

// asksAgain reports whether an app that could not be reached has a task of its own and is to be asked again, and waits until
// it is time to.
func (t *taskRun) asksAgain(err error) bool {
	if core.CodeOf(err) != core.CodeUnavailable {
		return false
	}
	t.mu.Lock()
	again := t.task.AppTask != "" && time.Since(t.answered) < askAgainFor
	if again {
		t.task.Message = "waiting for the app: " + core.TextOf(err)
	}
	t.mu.Unlock()
	if !again {
		return false
	}
	signal(t.changed)
	timer := time.NewTimer(askAgainAfter)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-t.ctx.Done():
		return false
	}
}

// store makes the call a task, and returns its handle. Notifications no longer reach the client.
func (t *taskRun) store(ctx context.Context) (json.RawMessage, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	t.task.CreatedAt, t.task.UpdatedAt, t.task.ExpiresAt, t.task.HeldUntil = now, now, now.Add(taskTTL), now.Add(t.n.tasks.lease)
	ctx, stop := context.WithTimeout(ctx, taskStoreTimeout)
	defer stop()
	if err := t.n.tasks.store.StartTask(ctx, t.task); err != nil {
		return nil, err
	}
	t.notify = nil
	handle := taskMembers(t.task)
	handle["resultType"] = "task"
	return json.Marshal(handle)
}

// drive holds a task until it has ended.
func (t *taskRun) drive() {
	defer t.cancel(nil)
	defer t.n.tasks.remove(t.task.ID)
	renew := time.NewTicker(t.n.tasks.lease / 4)
	defer renew.Stop()
	for {
		select {
		case end := <-t.ended:
			t.calling = false
			if end.err == nil && end.read.needsInput && t.askForInput(end.raw) {
				continue
			}
			t.end(end)
			return
		case <-t.changed:
			t.update()
		case <-renew.C:
			t.hold()
		case <-t.poked:
			t.hold()
		case <-t.ctx.Done():
			end := callEnd{err: context.Cause(t.ctx)}
			if t.calling {
				end = <-t.ended
			}
			t.end(end)
			return
		}
	}
}

// askForInput makes what a result asks for the input requests of the task. Their keys are unique among all that the call asks
// for.
func (t *taskRun) askForInput(result json.RawMessage) bool {
	var asked struct {
		InputRequests map[string]json.RawMessage `json:"inputRequests"`
		RequestState  json.RawMessage            `json:"requestState"`
	}
	if json.Unmarshal(result, &asked) != nil {
		return false
	}
	t.round++
	t.state, t.missing, t.input = asked.RequestState, map[string]bool{}, map[string]json.RawMessage{}
	requests := map[string]json.RawMessage{}
	for key, request := range asked.InputRequests {
		requests[t.prefix()+key], t.missing[key] = request, true
	}
	encoded, err := json.Marshal(requests)
	if err != nil || len(requests) == 0 {
		return false
	}
	t.mu.Lock()
	t.task.Status, t.task.Payload = core.TaskInputRequired, encoded
	t.mu.Unlock()
	t.update()
	return true
}

// prefix returns the prefix of the keys of the input requests of this round.
func (t *taskRun) prefix() string { return fmt.Sprintf("%d.", t.round) }

// hold renews the claim on the task, and takes what its client has sent.
func (t *taskRun) hold() {
	ctx, stop := context.WithTimeout(context.WithoutCancel(t.ctx), taskStoreTimeout)
	defer stop()
	until := time.Now().Add(t.n.tasks.lease)
	stored, responses, err := t.n.tasks.store.HoldTask(ctx, t.task.ID, t.task.Holder, until)
	switch {
	case core.CodeOf(err) == core.CodeNotFound:
		t.cancel(t.whyGone(ctx))
		return
	case err != nil:
		t.n.log.Warn("a task could not be held; trying again", "task", t.task.ID, "error", err)
		return
	}
	t.mu.Lock()
	t.task.HeldUntil = until
	t.mu.Unlock()
	var given map[string]json.RawMessage
	if len(responses) == 0 || json.Unmarshal(responses, &given) != nil || len(given) == 0 {
		return
	}
	t.mu.Lock()
	t.task.Status, t.task.Payload = stored.Status, stored.Payload
	if t.task.AppTask != "" {
		for key := range given {
			t.taken[key] = true
		}
	}
	t.mu.Unlock()
	t.deliver(given)
}

// whyGone returns why a task cannot be held any more.
func (t *taskRun) whyGone(ctx context.Context) error {
	t.mu.Lock()
	task := t.task
	t.mu.Unlock()
	if stored, err := t.n.tasks.store.Task(ctx, task); err == nil && stored.Status == core.TaskCancelled {
		return errTaskCancelled
	}
	return errTaskLost
}

// deliver passes responses of the client to the app's task, or repeats the call once it has all the input that it asked for.
func (t *taskRun) deliver(given map[string]json.RawMessage) {
	if t.isApps() {
		select {
		case t.responses <- given:
		case <-t.ctx.Done():
		}
		return
	}
	for key := range t.missing {
		if response := given[t.prefix()+key]; response != nil {
			t.input[key] = response
			delete(t.missing, key)
		}
	}
	if len(t.missing) > 0 || len(t.input) == 0 {
		return
	}
	call := t.call
	call.RequestState = t.state
	var err error
	if call.InputResponses, err = json.Marshal(t.input); err != nil {
		return
	}
	t.input = nil
	t.begin(call)
}

// update stores the state of the task.
func (t *taskRun) update() {
	t.mu.Lock()
	task := t.task
	t.mu.Unlock()
	ctx, stop := context.WithTimeout(context.WithoutCancel(t.ctx), taskStoreTimeout)
	defer stop()
	if err := t.n.tasks.store.UpdateTask(ctx, task); err != nil {
		t.n.log.Warn("the state of a task could not be stored", "task", task.ID, "error", err)
	}
}

// end stores the end of the task. If the server is closing and the app has a task of its own, the next server follows it.
func (t *taskRun) end(end callEnd) {
	cause := context.Cause(t.ctx)
	t.mu.Lock()
	task := t.task
	t.mu.Unlock()
	task.HeldUntil = time.Now()
	switch {
	case errors.Is(cause, errTaskCancelled), errors.Is(cause, errTaskLost):
		return
	case end.err != nil && errors.Is(cause, interact.ErrKeepTask) && task.AppTask == "":
		failTask(&task, "the server was stopped while it made the call; what the call has done is not known")
	case end.err != nil && errors.Is(cause, interact.ErrKeepTask):
	default:
		result, failure := t.outcome(end.raw, end.err)
		if failure != nil {
			task.Status, task.Message = core.TaskFailed, failure.Message
			task.Payload, _ = json.Marshal(failure) // its data is JSON
		} else {
			task.Status, task.Message, task.Payload = core.TaskCompleted, "", result
		}
	}
	t.mu.Lock()
	t.task = task
	t.mu.Unlock()
	t.update()
}
