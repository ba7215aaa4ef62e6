package tools

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
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
	changed   chan struct{}                   // capacity 1; signaled when task changes
	poked     chan struct{}                   // capacity 1
	responses chan map[string]json.RawMessage // for the app's task

	mu       sync.Mutex
	task     core.Task
	notify   func(rpc.Notification) // notifies the client's request, while there is one
	answered time.Time              // when the app last responded about its task
	taken    map[string]bool        // keys of input responses that were taken for the app, which never uses a key twice

	tried bool // the call was made before; only used by the goroutine that makes it

	// Only used by the goroutine that drives the task.
	calling bool                       // the call has not returned
	unsaved bool                       // the latest state could not be stored
	call    Call                       // to repeat with the input that it asked for
	round   int                        // how many times the call has asked for input
	state   json.RawMessage            // the requestState of the call
	missing map[string]bool            // keys of input that it still needs
	input   map[string]json.RawMessage // the input received so far, by the call's own keys
}

// callEnd holds the results of Namespace.call.
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
			end := t.try(call)
			t.tried = true
			if !t.awaitRetry(end.err) {
				t.ended <- end
				return
			}
		}
	})
}

// try makes the call once. A panic fails only the call, as it does without a task.
func (t *taskRun) try(call Call) (end callEnd) {
	defer func() {
		if p := recover(); p != nil {
			t.n.o.Logger.Error("call panicked", "tool", call.Name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			end = callEnd{err: core.Errorf(core.CodeInternal, "internal error")}
		}
	}()
	caller := t.caller
	if t.tried {
		if caller, end.err = t.n.current(t.ctx, caller); end.err != nil {
			return end
		}
	}
	end.raw, end.read, end.err = t.n.call(t.ctx, caller, &call, t)
	return end
}

// finished returns the end of a call that did not become a task.
func (t *taskRun) finished(end callEnd) (json.RawMessage, bool, error) {
	t.n.tasks.remove(t.task.ID)
	end = t.explained(end)
	t.cancel(nil)
	return end.raw, end.read.isError, end.err
}

// explained returns the end of the call, with the reason if the call was ended because its caller lost access.
func (t *taskRun) explained(end callEnd) callEnd {
	if end.err != nil && errors.Is(context.Cause(t.ctx), errTaskRevoked) {
		return callEnd{err: errTaskRevoked}
	}
	return end
}

// forward passes a notification on to the client's request. A task has none.
func (t *taskRun) forward(n rpc.Notification) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.notify != nil {
		t.notify(n)
	}
}

// isAppTask reports whether the app has created a task for the call.
func (t *taskRun) isAppTask() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.task.AppTask != ""
}

// resolved records which tool and account the call uses. A nil taskRun is a call that cannot become a task.
func (t *taskRun) resolved(tool, account string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	account = cmp.Or(account, t.task.Account) // a failed attempt to ask the app again does not change it
	if t.task.Tool != tool || t.task.Account != account {
		t.task.Tool, t.task.Account = tool, account
		signal(t.changed)
	}
}

// follow returns how to follow the app's own task, or nil for a call that cannot become a task.
func (t *taskRun) follow() *interact.Follow {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return &interact.Follow{ID: t.task.AppTask, Changed: t.appTaskChanged, Responses: t.responses, Unsent: t.respond}
}

// appTaskChanged records the state of the app's task.
func (t *taskRun) appTaskChanged(state interact.FollowedTask) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.answered = time.Now()
	before := t.task
	if before.AppTask == "" {
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
	if before.AppTask != state.ID || before.Message != state.Message || before.Status != t.task.Status || !bytes.Equal(before.Payload, t.task.Payload) {
		signal(t.changed) // an app may be asked many times a second
	}
}

// awaitRetry reports whether to ask an unreachable app about its own task again. If so, it first waits until it is time
// to do so.
func (t *taskRun) awaitRetry(err error) bool {
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

// store makes the call a task, and returns its handle. From then on, notifications do not reach the client. Code that
// receives notifications must not wait for the database, because all other calls to the app would have to wait too.
func (t *taskRun) store(ctx context.Context) (json.RawMessage, error) {
	now := time.Now()
	t.mu.Lock()
	t.task.CreatedAt, t.task.UpdatedAt, t.task.ExpiresAt, t.task.HeldUntil = now, now, now.Add(taskTTL), now.Add(t.n.tasks.lease)
	task := t.task
	t.mu.Unlock()
	ctx, stop := context.WithTimeout(ctx, taskStoreTimeout)
	defer stop()
	if err := t.n.tasks.store.StartTask(ctx, task); err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.notify = nil
	t.mu.Unlock()
	handle := taskMembers(task)
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
			t.unsaved = !t.update()
		case <-renew.C:
			t.hold()
			if t.unsaved {
				t.unsaved = !t.update()
			}
		case <-t.poked:
			t.hold()
		case <-t.ctx.Done():
			end := callEnd{err: context.Cause(t.ctx)}
			if t.calling {
				if end = <-t.ended; end.read.needsInput { // nobody will answer
					end = callEnd{err: context.Cause(t.ctx)}
				}
			}
			t.end(end)
			return
		}
	}
}

// askForInput turns the input that a result asks for into input requests of the task. Their keys are unique within the
// call.
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
	t.unsaved = !t.update()
	return true
}

// prefix returns the prefix for the keys of this round's input requests.
func (t *taskRun) prefix() string { return fmt.Sprintf("%d.", t.round) }

// hold renews the claim on the task, and takes the responses that its client has sent.
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
		t.n.o.Logger.Warn("could not renew the claim on a task; trying again", "task", t.task.ID, "error", err)
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

// whyGone returns why a task can no longer be held.
func (t *taskRun) whyGone(ctx context.Context) error {
	t.mu.Lock()
	task := t.task
	t.mu.Unlock()
	stored, err := t.n.tasks.store.Task(ctx, task)
	switch {
	case err == nil && stored.Status == core.TaskCancelled:
		return errTaskCancelled
	case err == nil && stored.Holder != task.Holder:
		return errTaskTaken
	default:
		return errTaskLost
	}
}

// deliver passes responses of the client to the app's task, or repeats the call once it has all the input that it asked
// for.
func (t *taskRun) deliver(given map[string]json.RawMessage) {
	if t.calling && t.isAppTask() {
		t.respond(given)
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

// respond keeps responses for the app's task, together with those that it has not received yet. It does not wait,
// because the receiver may be gone.
func (t *taskRun) respond(given map[string]json.RawMessage) {
	for {
		select {
		case t.responses <- given:
			return
		case earlier := <-t.responses:
			maps.Copy(earlier, given)
			given = earlier
		}
	}
}

// update stores the state of the task, and reports whether that succeeded.
func (t *taskRun) update() bool {
	t.mu.Lock()
	task := t.task
	t.mu.Unlock()
	ctx, stop := context.WithTimeout(context.WithoutCancel(t.ctx), taskStoreTimeout)
	defer stop()
	if err := t.n.tasks.store.UpdateTask(ctx, task); err != nil {
		t.n.o.Logger.Warn("the state of a task could not be stored", "task", task.ID, "error", err)
		return false
	}
	t.n.tasks.wakeWatchers(task.ID)
	return true
}

// end stores the end of the task. If the server is closing and the app has its own task, the next server follows it.
func (t *taskRun) end(end callEnd) {
	cause, end := context.Cause(t.ctx), t.explained(end)
	t.mu.Lock()
	task := t.task
	t.mu.Unlock()
	task.HeldUntil = time.Now()
	switch {
	case errors.Is(cause, errTaskCancelled), errors.Is(cause, errTaskLost), errors.Is(cause, errTaskTaken):
		return
	case end.err != nil && errors.Is(cause, interact.ErrKeepTask) && task.AppTask == "":
		failTask(&task, "the server was stopped while it was making the call; it is unknown what the call did")
	case end.err != nil && errors.Is(cause, interact.ErrKeepTask):
	default:
		result, failure := t.outcome(end.raw, end.err)
		if failure != nil {
			task.Status, task.Message = core.TaskFailed, failure.Message
			task.Payload, _ = json.Marshal(failure) // this cannot fail, because the error's data is JSON
		} else {
			task.Status, task.Message, task.Payload = core.TaskCompleted, "", result
		}
	}
	t.mu.Lock()
	t.task = task
	t.mu.Unlock()
	for tries := 1; !t.update() && tries < storeEndTries && t.ctx.Err() == nil; tries++ { // only this server knows the result
		select {
		case <-time.After(storeEndAfter):
		case <-t.ctx.Done():
		}
	}
}
