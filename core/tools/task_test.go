package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tools"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/internal/testkit/fakeapps"
)

// fakeTasks stores tasks in memory.
type fakeTasks struct {
	mu        sync.Mutex
	all       map[string]core.Task
	responses map[string]map[string]json.RawMessage
	full      bool
	updates   int
	failing   int // how many updates fail
}

func (f *fakeTasks) StartTask(_ context.Context, t core.Task) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.full {
		return core.Errorf(core.CodeLimitReached, "too many tasks")
	}
	f.all[t.ID] = t
	return nil
}

func (f *fakeTasks) Task(_ context.Context, t core.Task) (core.Task, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if found, ok := f.all[t.ID]; ok && found.User == t.User && found.Key == t.Key && found.Workspace == t.Workspace {
		return found, nil
	}
	return t, core.Errorf(core.CodeNotFound, "there is no task %q", t.ID)
}

func (f *fakeTasks) HoldTask(_ context.Context, id, holder string, until time.Time) (core.Task, json.RawMessage, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t, ok := f.all[id]
	if !ok || t.Holder != holder || t.Status.Final() {
		return t, nil, core.Errorf(core.CodeNotFound, "not held")
	}
	t.HeldUntil = until
	f.all[id] = t
	given := f.responses[id]
	delete(f.responses, id)
	raw, err := json.Marshal(given)
	return t, raw, err
}

func (f *fakeTasks) ClaimTask(_ context.Context, id, holder string, until time.Time) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.all[id]
	t.Holder, t.HeldUntil = holder, until
	f.all[id] = t
	return true, nil
}

func (f *fakeTasks) UpdateTask(_ context.Context, t core.Task) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.updates++; f.failing > 0 {
		f.failing--
		return errors.New("no database")
	}
	if stored := f.all[t.ID]; stored.Holder == t.Holder && !stored.Status.Final() {
		f.all[t.ID] = t
	}
	return nil
}

func (f *fakeTasks) AnswerTask(_ context.Context, t core.Task, responses map[string]json.RawMessage) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.responses[t.ID] == nil {
		f.responses[t.ID] = map[string]json.RawMessage{}
	}
	maps.Copy(f.responses[t.ID], responses)
	return nil
}

func (f *fakeTasks) CancelTask(_ context.Context, t core.Task) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	t.Status = core.TaskCancelled
	f.all[t.ID] = t
	return nil
}

// slow returns a namespace whose only tool, jobs__run, responds with answer. Its calls become tasks immediately.
func slow(t *testing.T, answer func(context.Context, fakeapps.Call) (json.RawMessage, error)) (*tools.Namespace, *fakeTasks) {
	t.Helper()
	apps := &fakeapps.Apps{}
	apps.SetOffer("ws_a", &core.Offer{Tools: []core.Tool{tool("jobs", "run", `{"name":"run","inputSchema":{"type":"object"}}`)}})
	apps.Answer(answer)
	tasks := &fakeTasks{all: map[string]core.Task{}, responses: map[string]map[string]json.RawMessage{}}
	n := tools.New(tools.Options{Apps: apps, Events: &events{}, Features: config.Features{}, Logger: hclog.NewNullLogger(), Tasks: tasks, TaskAfter: time.Millisecond, TaskLease: time.Minute})
	t.Cleanup(func() { _ = n.Close(context.Background()) }) // nothing is running unless the test has failed
	return n, tasks
}

// outcome replaces every error with an error with the code 1.
func outcome(result json.RawMessage, err error) (json.RawMessage, *rpc.Error) {
	if err != nil {
		return nil, &rpc.Error{Code: 1, Message: err.Error()}
	}
	return result, nil
}

// taskView is a task as its client sees it.
type taskView struct {
	ResultType, TaskID, Status string
	InputRequests              map[string]json.RawMessage
	Result, Error              json.RawMessage
}

func startSlow(t *testing.T, n *tools.Namespace) (view taskView) {
	t.Helper()
	raw, _, err := n.CallTask(t.Context(), caller("ws_a", core.RoleMember), tools.Call{Name: "jobs__run", From: tools.From{Stateless: true}}, outcome)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &view); err != nil {
		t.Fatal(err)
	}
	return view
}

// awaitTask waits until a task is in a state.
func awaitTask(t *testing.T, n *tools.Namespace, id string, status core.TaskStatus) (view taskView) {
	t.Helper()
	if !testkit.Within(time.Minute, func() bool {
		raw, err := n.Task(t.Context(), caller("ws_a", core.RoleMember), id, outcome)
		view = taskView{}
		return err == nil && json.Unmarshal(raw, &view) == nil && view.Status == string(status)
	}) {
		t.Fatalf("the task is %+v", view)
	}
	return view
}

func TestASlowCallBecomesATaskThatAsksForInput(t *testing.T) {
	release := make(chan struct{})
	rounds := 0
	n, _ := slow(t, func(_ context.Context, c fakeapps.Call) (json.RawMessage, error) {
		<-release
		if rounds++; rounds <= 2 {
			return json.RawMessage(`{"resultType":"input_required","requestState":"s","inputRequests":{"name":{"method":"elicitation/create"}}}`), nil
		}
		return json.RawMessage(`{"content":[],"sent":` + string(c.Params) + `}`), nil
	})
	handle := startSlow(t, n)
	if handle.ResultType != "task" || handle.Status != "working" || handle.TaskID == "" {
		t.Fatalf("the handle: %+v", handle)
	}
	close(release)
	for _, key := range []string{"1.name", "2.name"} { // a key is never used twice
		var asked taskView
		if !testkit.Within(time.Minute, func() bool {
			asked = awaitTask(t, n, handle.TaskID, core.TaskInputRequired)
			return asked.InputRequests[key] != nil
		}) {
			t.Fatalf("the task asks for %v, not %s", asked.InputRequests, key)
		}
		if err := n.AnswerTask(t.Context(), caller("ws_a", core.RoleMember), handle.TaskID, json.RawMessage(`{"`+key+`":{"action":"accept"},"other":{}}`)); err != nil {
			t.Fatal(err)
		}
	}
	done := awaitTask(t, n, handle.TaskID, core.TaskCompleted)
	if sent := string(done.Result); !strings.Contains(sent, `"inputResponses":{"name":{"action":"accept"}}`) || !strings.Contains(sent, `"requestState":"s"`) {
		t.Errorf("the app received %s", sent)
	}
}

func TestEachChangeToAWatchedTaskIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		n, tasks := slow(t, func(_ context.Context, c fakeapps.Call) (json.RawMessage, error) {
			<-release
			if !strings.Contains(string(c.Params), "inputResponses") {
				return json.RawMessage(`{"resultType":"input_required","requestState":"s","inputRequests":{"name":{"method":"elicitation/create"}}}`), nil
			}
			return json.RawMessage(`{"content":[]}`), nil
		})
		c := caller("ws_a", core.RoleMember)
		id := startSlow(t, n).TaskID
		elsewhere := core.Task{ID: "task_elsewhere", Workspace: c.Workspace.ID, User: c.User.ID, Key: c.Scope.Key, Tool: "jobs__run", Status: core.TaskWorking, Holder: "another server", HeldUntil: time.Now().Add(time.Hour)}
		_ = tasks.StartTask(t.Context(), elsewhere)
		var seen []string
		over := make(chan struct{})
		go func() {
			defer close(over)
			n.WatchTasks(t.Context(), c, []string{id, "task_unknown", elsewhere.ID}, outcome, func(raw json.RawMessage) {
				var task taskView
				if same, err := n.Task(t.Context(), c, id, outcome); json.Unmarshal(raw, &task) != nil || task.TaskID == id && (err != nil || string(same) != string(raw)) {
					t.Errorf("watched: %s\nasked: %s, %v", raw, same, err)
				}
				seen = append(seen, strings.TrimPrefix(task.TaskID, id)+task.Status)
			})
		}()
		synctest.Wait()
		close(release)
		synctest.Wait()
		if err := n.AnswerTask(t.Context(), c, id, json.RawMessage(`{"1.name":{"action":"accept"}}`)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		elsewhere.Status = core.TaskCompleted // without notifying this server
		_ = tasks.UpdateTask(t.Context(), elsewhere)
		<-over
		if want := []string{"working", "task_elsewhereworking", "input_required", "completed", "task_elsewherecompleted"}; !slices.Equal(seen, want) {
			t.Errorf("saw %v, want %v", seen, want)
		}
	})
}

func TestACancelledTaskEndsItsCall(t *testing.T) {
	ended := make(chan error, 1)
	n, _ := slow(t, func(ctx context.Context, _ fakeapps.Call) (json.RawMessage, error) {
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	})
	id := startSlow(t, n).TaskID
	if err := n.CancelTask(t.Context(), caller("ws_a", core.RoleMember), id); err != nil {
		t.Fatal(err)
	}
	<-ended
	awaitTask(t, n, id, core.TaskCancelled)
}

func TestATaskIsStoredUnderItsToolsFullName(t *testing.T) {
	n, tasks := slow(t, func(ctx context.Context, _ fakeapps.Call) (json.RawMessage, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	raw, _, err := n.CallTask(t.Context(), caller("ws_a", core.RoleMember), tools.Call{Name: "run", From: tools.From{Stateless: true}}, outcome)
	var handle taskView
	if err != nil || json.Unmarshal(raw, &handle) != nil {
		t.Fatalf("%s, %v", raw, err)
	}
	tasks.mu.Lock()
	stored := tasks.all[handle.TaskID].Tool
	tasks.mu.Unlock()
	if stored != "jobs__run" {
		t.Errorf("stored as %q", stored)
	}
	if err := n.CancelTask(t.Context(), caller("ws_a", core.RoleMember), handle.TaskID); err != nil {
		t.Error(err)
	}
}

func TestACallBeyondTheTaskLimitReturnsItsResult(t *testing.T) {
	n, tasks := slow(t, func(context.Context, fakeapps.Call) (json.RawMessage, error) {
		<-time.After(20 * time.Millisecond)
		return json.RawMessage(`{"content":[]}`), nil
	})
	tasks.full = true
	if got := startSlow(t, n); got.ResultType == "task" {
		t.Errorf("the call became %+v", got)
	}
}

func TestATaskFailsIfItsCallFails(t *testing.T) {
	release := make(chan struct{})
	n, _ := slow(t, func(context.Context, fakeapps.Call) (json.RawMessage, error) {
		<-release
		return nil, errors.New("broken")
	})
	id := startSlow(t, n).TaskID
	close(release)
	if failed := awaitTask(t, n, id, core.TaskFailed); !strings.Contains(string(failed.Error), `"message":"broken"`) || failed.Result != nil {
		t.Errorf("the task: %+v", failed)
	}
}

func TestATaskFailsIfItsServerHasStopped(t *testing.T) {
	called := false
	n, tasks := slow(t, func(context.Context, fakeapps.Call) (json.RawMessage, error) {
		called = true
		return json.RawMessage(`{}`), nil
	})
	c := caller("ws_a", core.RoleMember)
	tasks.all["task_1"] = core.Task{ID: "task_1", Workspace: c.Workspace.ID, User: c.User.ID, Key: c.Scope.Key, Tool: "jobs__run", Status: core.TaskWorking, Holder: "gone"}
	if failed := awaitTask(t, n, "task_1", core.TaskFailed); !strings.Contains(string(failed.Error), "the server that made the call stopped") || called {
		t.Errorf("the task: %+v, called again: %v", failed, called)
	}
	other := c
	other.User.ID = "usr_other"
	if _, err := n.Task(t.Context(), other, "task_1", outcome); core.CodeOf(err) != core.CodeNotFound {
		t.Errorf("another user's task: %v", err)
	}
}

func TestAPanicFailsOnlyItsTask(t *testing.T) {
	release := make(chan struct{})
	n, _ := slow(t, func(context.Context, fakeapps.Call) (json.RawMessage, error) {
		<-release
		panic("broken")
	})
	id := startSlow(t, n).TaskID
	close(release)
	if failed := awaitTask(t, n, id, core.TaskFailed); !strings.Contains(string(failed.Error), "internal error") || strings.Contains(string(failed.Error), "broken") {
		t.Errorf("the task: %+v", failed)
	}
}

func TestATaskEndsWhenItsCallerLosesAccess(t *testing.T) {
	ended := make(chan error, 1)
	n, _ := slow(t, func(ctx context.Context, _ fakeapps.Call) (json.RawMessage, error) {
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil, ctx.Err()
	})
	id := startSlow(t, n).TaskID
	n.EndTasks("usr_other", func(core.Caller) bool { return true })
	n.EndTasks("", func(core.Caller) bool { return false })
	select {
	case err := <-ended:
		t.Fatalf("the call ended although its caller had access: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	n.EndTasks("", func(c core.Caller) bool { return c.Workspace.ID == "ws_a" })
	<-ended
	if failed := awaitTask(t, n, id, core.TaskFailed); !strings.Contains(string(failed.Error), "lost access") {
		t.Errorf("the task: %+v", failed)
	}
}

func TestAServerWhoseClaimExpiredDoesNotTakeOverItsOwnTask(t *testing.T) {
	release := make(chan struct{})
	n, tasks := slow(t, func(context.Context, fakeapps.Call) (json.RawMessage, error) {
		<-release
		return json.RawMessage(`{"content":[]}`), nil
	})
	id := startSlow(t, n).TaskID
	tasks.mu.Lock()
	late := tasks.all[id]
	late.HeldUntil = time.Now().Add(-time.Second)
	tasks.all[id] = late
	tasks.mu.Unlock()
	awaitTask(t, n, id, core.TaskWorking)
	close(release)
	awaitTask(t, n, id, core.TaskCompleted)
}

func TestAnAppsTaskContinuesWhenAnotherServerTakesItOver(t *testing.T) {
	ended := make(chan error, 1)
	n, tasks := slow(t, func(ctx context.Context, c fakeapps.Call) (json.RawMessage, error) {
		c.Follow.Changed(interact.FollowedTask{ID: "app-1"})
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil, ctx.Err()
	})
	id := startSlow(t, n).TaskID
	if _, err := tasks.ClaimTask(t.Context(), id, "other", time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := n.AnswerTask(t.Context(), caller("ws_a", core.RoleMember), id, json.RawMessage(`{}`)); err != nil { // this server reads the task
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, interact.ErrKeepTask) {
		t.Errorf("the call ended with %v, so the app's task was cancelled", err)
	}
	awaitTask(t, n, id, core.TaskWorking)
}

func TestUnclaimedResponsesDoNotKeepATaskFromEnding(t *testing.T) {
	release := make(chan struct{})
	taken := make(chan map[string]json.RawMessage, 1)
	n, tasks := slow(t, func(_ context.Context, c fakeapps.Call) (json.RawMessage, error) {
		c.Follow.Changed(interact.FollowedTask{ID: "app-1"})
		<-release
		c.Follow.Unsent(map[string]json.RawMessage{"unsent": json.RawMessage(`{}`)})
		taken <- <-c.Follow.Responses
		return json.RawMessage(`{"content":[]}`), nil
	})
	id := startSlow(t, n).TaskID
	for _, key := range []string{"a", "b", "c"} {
		if err := n.AnswerTask(t.Context(), caller("ws_a", core.RoleMember), id, json.RawMessage(`{"`+key+`":{}}`)); err != nil {
			t.Fatal(err)
		}
		if !testkit.Within(time.Minute, func() bool {
			tasks.mu.Lock()
			defer tasks.mu.Unlock()
			return len(tasks.responses[id]) == 0
		}) {
			t.Fatalf("the response %s was not accepted", key)
		}
	}
	close(release)
	awaitTask(t, n, id, core.TaskCompleted)
	if got := <-taken; len(got) == 0 || got["unsent"] == nil {
		t.Errorf("the app's task received %v", got)
	}
}

func TestATasksEndIsStoredOnceTheDatabaseIsAvailableAgain(t *testing.T) {
	release := make(chan struct{})
	n, tasks := slow(t, func(context.Context, fakeapps.Call) (json.RawMessage, error) {
		<-release
		return json.RawMessage(`{"content":[]}`), nil
	})
	id := startSlow(t, n).TaskID
	tasks.mu.Lock()
	tasks.failing = 1
	tasks.mu.Unlock()
	close(release)
	awaitTask(t, n, id, core.TaskCompleted)
}

func TestAnAppsTaskIsStoredWhenItChanges(t *testing.T) {
	release := make(chan struct{})
	n, tasks := slow(t, func(_ context.Context, c fakeapps.Call) (json.RawMessage, error) {
		polls := time.NewTicker(2 * time.Millisecond)
		defer polls.Stop()
		for range 20 {
			<-polls.C
			c.Follow.Changed(interact.FollowedTask{ID: "app-1", Message: "busy"})
		}
		<-release
		return json.RawMessage(`{"content":[]}`), nil
	})
	id := startSlow(t, n).TaskID
	close(release)
	awaitTask(t, n, id, core.TaskCompleted)
	tasks.mu.Lock()
	defer tasks.mu.Unlock()
	if tasks.updates > 2 { // its state and its end
		t.Errorf("the task was stored %d times", tasks.updates)
	}
}
