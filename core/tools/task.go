package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// A task is a call that is stored (MCP extension io.modelcontextprotocol/tasks). A call becomes a task if its client
// accepts tasks and either the app responds with its own task or the call takes a long time. It continues like any
// other call, and the response that its client would have received is stored. Its holder, the server that makes the
// call, renews a claim on it. If the holder is gone and the app has its own task, the next server that is asked about
// the task follows the app's task. A call without such a task cannot be continued, so it has failed.

// Tasks stores tasks. *store.Store implements it and documents the methods.
type Tasks interface {
	StartTask(ctx context.Context, t core.Task) error
	Task(ctx context.Context, t core.Task) (core.Task, error)
	HoldTask(ctx context.Context, id, holder string, until time.Time) (t core.Task, responses json.RawMessage, err error)
	ClaimTask(ctx context.Context, id, holder string, until time.Time) (claimed bool, err error)
	UpdateTask(ctx context.Context, t core.Task) error
	AnswerTask(ctx context.Context, t core.Task, responses map[string]json.RawMessage) error
	CancelTask(ctx context.Context, t core.Task) error
}

// Outcome turns the outcome of a call into the response that its client would have received: a result or an error.
type Outcome func(result json.RawMessage, err error) (json.RawMessage, *rpc.Error)

const (
	taskTTL   = 24 * time.Hour
	pollEvery = 2 * time.Second // suggested to clients

	taskAfterDefault = 5 * time.Second
	taskLeaseDefault = 20 * time.Second
	taskStoreTimeout = 10 * time.Second

	storeEndAfter = time.Second // between attempts to store the end of a task
	storeEndTries = 30

	askAgainAfter = 5 * time.Second  // between attempts to reach an app that has a task
	askAgainFor   = 15 * time.Minute // how long an app that has a task may be unreachable
)

var (
	errTaskCancelled = errors.New("the task was cancelled")
	errTaskLost      = errors.New("the task was deleted")
	errTaskTaken     = fmt.Errorf("another server holds the task: %w", interact.ErrKeepTask)
	errTaskRevoked   = core.Errorf(core.CodeWorkspaceDenied, "the call was stopped because its caller lost access; it is unknown what the call did")
)

// taskRuns holds the tasks that this server holds.
type taskRuns struct {
	store  Tasks // nil if there are no tasks
	after  time.Duration
	lease  time.Duration
	holder string

	group sync.WaitGroup // the runs and their goroutines

	mu       sync.Mutex
	closed   bool
	runs     map[string]*taskRun
	watchers map[string][]chan<- struct{} // by task; signaled when this server changes it
}

func newTaskRuns(o Options) *taskRuns {
	return &taskRuns{
		store: o.Tasks, after: cmp.Or(o.TaskAfter, taskAfterDefault), lease: cmp.Or(o.TaskLease, taskLeaseDefault), holder: core.RandomID(""),
		runs: map[string]*taskRun{}, watchers: map[string][]chan<- struct{}{},
	}
}

// add registers a call. It returns false if the namespace is closed.
func (s *taskRuns) add(t *taskRun) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.runs[t.task.ID] = t
	s.group.Add(1)
	return true
}

func (s *taskRuns) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.runs, id)
	s.group.Done()
}

// poke makes all watchers of a task look at it now. If this server holds the task, the holder looks at it as well.
func (s *taskRuns) poke(id string) {
	s.mu.Lock()
	t := s.runs[id]
	s.mu.Unlock()
	if t != nil {
		signal(t.poked)
	}
	s.wakeWatchers(id)
}

// watch signals a channel of capacity 1 when this server changes one of the tasks.
func (s *taskRuns) watch(ids []string, changed chan<- struct{}) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		s.watchers[id] = append(s.watchers[id], changed)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, id := range ids {
			if s.watchers[id] = slices.DeleteFunc(s.watchers[id], func(c chan<- struct{}) bool { return c == changed }); len(s.watchers[id]) == 0 {
				delete(s.watchers, id)
			}
		}
	}
}

func (s *taskRuns) wakeWatchers(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, changed := range s.watchers[id] {
		signal(changed)
	}
}

// holds reports whether this server makes the call of a task, or asks the app about it.
func (s *taskRuns) holds(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs[id] != nil
}

// EndTasks ends the calls of a user, or of all users if userID is "", that are tasks or may become tasks, and whose
// caller no longer has access.
func (n *Namespace) EndTasks(userID string, revoked func(core.Caller) bool) {
	n.tasks.mu.Lock()
	var runs []*taskRun
	for _, t := range n.tasks.runs {
		if userID == "" || t.caller.User.ID == userID {
			runs = append(runs, t)
		}
	}
	n.tasks.mu.Unlock()
	for _, t := range runs {
		if revoked(t.caller) {
			t.cancel(errTaskRevoked)
		}
	}
}

// Close ends the calls that have become tasks. Tasks that apps run themselves continue; the others fail.
func (n *Namespace) Close(ctx context.Context) error {
	n.tasks.mu.Lock()
	n.tasks.closed = true
	for _, t := range n.tasks.runs {
		t.cancel(interact.ErrKeepTask)
	}
	n.tasks.mu.Unlock()
	return core.Await(ctx, n.tasks.group.Wait)
}

// CallTask is like Call, for a stateless client that accepts a task instead of a result. If the call becomes a task,
// the result is its handle, and outcome is called when the call ends.
func (n *Namespace) CallTask(ctx context.Context, c core.Caller, call Call, outcome Outcome) (result json.RawMessage, failed bool, err error) {
	t := n.newTaskRun(ctx, c, core.Task{ID: core.RandomID("task_") + core.RandomID(""), Tool: n.Called(call)}, outcome)
	if n.tasks.store == nil || !n.tasks.add(t) {
		t.cancel(nil)
		return n.Call(ctx, c, call)
	}
	t.notify, call.Notify = call.Notify, t.forward
	t.call = call
	t.begin(call)
	stop := context.AfterFunc(ctx, func() { t.cancel(context.Cause(ctx)) })
	defer stop()
	slow := time.NewTimer(n.tasks.after)
	defer slow.Stop()
	select {
	case end := <-t.ended:
		if !t.isAppTask() {
			return t.finished(end)
		}
		t.ended <- end
	case <-t.created:
	case <-slow.C:
	}
	handle, err := t.store(ctx)
	if err != nil {
		n.o.Logger.Debug("could not turn a call into a task", "tool", call.Name, "workspace", c.Workspace.ID, "error", err)
		return t.finished(<-t.ended)
	}
	if !stop() { // the client has disconnected, and never learned of the task
		t.cancel(context.Cause(ctx))
	}
	n.tasks.group.Go(t.drive)
	return handle, false, nil
}

// failTask marks a task as failed without a response.
func failTask(t *core.Task, message string) {
	t.Status, t.Message = core.TaskFailed, message
	t.Payload, _ = json.Marshal(&rpc.Error{Code: rpc.CodeInternalError, Message: message}) // strings always encode
}

// Task implements tasks/get. The error is core.CodeNotFound if the caller has no such task, or if the caller's views do
// not show its tool.
func (n *Namespace) Task(ctx context.Context, c core.Caller, id string, outcome Outcome) (json.RawMessage, error) {
	task, err := n.presentTask(ctx, c, id, outcome)
	if err != nil {
		return nil, err
	}
	return describeTask(task)
}

// presentTask returns a task of a caller as it is now. If its holder is gone, this server takes it over.
func (n *Namespace) presentTask(ctx context.Context, c core.Caller, id string, outcome Outcome) (core.Task, error) {
	task, err := n.taskOf(ctx, c, id)
	if err == nil && !task.Status.Final() && time.Now().After(task.HeldUntil) {
		return n.recoverTask(ctx, c, task, outcome)
	}
	return task, err
}

// WatchTasks calls changed with each of a caller's tasks as Task returns it: now, and after each change. It returns
// once all tasks have ended or no longer belong to the caller, or when ctx ends. It notices changes made by other
// servers within pollEvery.
func (n *Namespace) WatchTasks(ctx context.Context, c core.Caller, ids []string, outcome Outcome, changed func(task json.RawMessage)) {
	woken, last := make(chan struct{}, 1), map[string]string{}
	defer n.tasks.watch(ids, woken)()
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for left := slices.Clone(ids); ; {
		left = slices.DeleteFunc(left, func(id string) (over bool) {
			task, err := n.presentTask(ctx, c, id, outcome)
			if err != nil {
				return core.CodeOf(err) == core.CodeNotFound // any other error is temporary
			}
			if raw, err := describeTask(task); err == nil && string(raw) != last[id] {
				last[id] = string(raw)
				changed(raw)
			}
			return task.Status.Final()
		})
		if len(left) == 0 {
			return
		}
		select {
		case <-woken:
		case <-poll.C:
		case <-ctx.Done():
			return
		}
	}
}

// describeTask returns a task as its client sees it.
func describeTask(task core.Task) (json.RawMessage, error) {
	all := taskMembers(task)
	switch task.Status {
	case core.TaskCompleted:
		all["result"] = task.Payload
	case core.TaskFailed:
		all["error"] = task.Payload
	case core.TaskInputRequired:
		all["inputRequests"] = task.Payload
	case core.TaskWorking, core.TaskCancelled:
	}
	return json.Marshal(all)
}

// AnswerTask implements tasks/update. The errors are those of Task.
func (n *Namespace) AnswerTask(ctx context.Context, c core.Caller, id string, responses json.RawMessage) error {
	task, err := n.taskOf(ctx, c, id)
	if err != nil {
		return err
	}
	if !c.MayNameRoots() {
		responses = withoutRoots(responses)
	}
	var byKey map[string]json.RawMessage
	if err := json.Unmarshal(responses, &byKey); err != nil {
		return core.Errorf(core.CodeBadRequest, "inputResponses must be an object: %w", err)
	}
	if err := n.tasks.store.AnswerTask(ctx, task, byKey); err != nil {
		return err
	}
	n.tasks.poke(id)
	return nil
}

// CancelTask implements tasks/cancel. The errors are those of Task.
func (n *Namespace) CancelTask(ctx context.Context, c core.Caller, id string) error {
	task, err := n.taskOf(ctx, c, id)
	if err != nil {
		return err
	}
	if err := n.tasks.store.CancelTask(ctx, task); err != nil {
		return err
	}
	n.tasks.poke(id)
	return nil
}

func (n *Namespace) taskOf(ctx context.Context, c core.Caller, id string) (core.Task, error) {
	unknown := core.Errorf(core.CodeNotFound, "there is no task %.80q", id)
	if n.tasks.store == nil {
		return core.Task{}, unknown
	}
	task, err := n.tasks.store.Task(ctx, core.Task{ID: id, Workspace: c.Workspace.ID, User: c.User.ID, Key: c.Scope.Key})
	if err == nil && !n.ShowsTool(c, "", task.Tool) {
		return core.Task{}, unknown
	}
	return task, err
}

// recoverTask takes over a task whose holder is gone, and returns its new state.
func (n *Namespace) recoverTask(ctx context.Context, c core.Caller, task core.Task, outcome Outcome) (core.Task, error) {
	if n.tasks.holds(task.ID) { // the claim could not be renewed in time
		n.tasks.poke(task.ID)
		return task, nil
	}
	task.Holder, task.HeldUntil = n.tasks.holder, time.Now().Add(n.tasks.lease)
	claimed, err := n.tasks.store.ClaimTask(ctx, task.ID, task.Holder, task.HeldUntil)
	if err != nil {
		return task, err
	}
	if !claimed {
		return n.tasks.store.Task(ctx, task)
	}
	if task.AppTask == "" {
		failTask(&task, "the server that made the call stopped before the call returned; it is unknown what the call did")
		return task, n.tasks.store.UpdateTask(ctx, task)
	}
	t := n.newTaskRun(ctx, c, task, outcome)
	t.task = task
	if !n.tasks.add(t) {
		return task, nil // the server is closing; the next one takes over
	}
	close(t.created)
	t.call = Call{Name: task.Tool, Account: task.Account, From: From{Stateless: true}}
	t.begin(t.call)
	n.tasks.group.Go(t.drive)
	return task, nil
}

// taskMembers returns the members that a task has in every result.
func taskMembers(t core.Task) map[string]any {
	all := map[string]any{
		"taskId": t.ID, "status": t.Status, "createdAt": core.Stamp(t.CreatedAt), "lastUpdatedAt": core.Stamp(t.UpdatedAt),
		"ttlMs": t.ExpiresAt.Sub(t.CreatedAt).Milliseconds(), "pollIntervalMs": pollEvery.Milliseconds(),
	}
	if t.Message != "" {
		all["statusMessage"] = t.Message
	}
	return all
}

// signal sends to a channel of capacity 1, unless it is full.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
