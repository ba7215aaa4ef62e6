package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// startTask stores a task that a server named a holds.
func startTask(t *testing.T, s *Store, task core.Task) core.Task {
	t.Helper()
	task.Workspace, task.Tool, task.Holder, task.Status = core.DefaultWorkspaceID, "a__b", "a", core.TaskWorking
	task.CreatedAt, task.HeldUntil, task.ExpiresAt = time.Now(), time.Now().Add(time.Hour), time.Now().Add(time.Hour)
	if err := s.StartTask(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	return task
}

func TestATaskIsReadOnlyByItsOwner(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		people := members(t, s, "alice", "bob")
		key, err := s.CreateAPIKey(t.Context(), core.APIKey{Name: "k", User: people[0], Workspace: core.DefaultWorkspaceID, Role: core.RoleMember}, "hash")
		if err != nil {
			t.Fatal(err)
		}
		mine := startTask(t, s, core.Task{ID: "task_1", User: people[0].ID})
		keys := startTask(t, s, core.Task{ID: "task_2", User: people[0].ID, Key: key.ID, AppTask: "x\x00"})
		for _, task := range []core.Task{mine, keys} {
			if got, err := s.Task(t.Context(), task); err != nil || got.Tool != "a__b" || got.Status != core.TaskWorking || got.Holder != "a" {
				t.Errorf("%s: %+v, %v", task.ID, got, err)
			}
		}
		for _, foreign := range []core.Task{
			{ID: "task_0", Workspace: mine.Workspace, User: mine.User}, {ID: "task_1", Workspace: mine.Workspace, User: people[1].ID},
			{ID: "task_1", Workspace: "ws_other", User: mine.User}, {ID: "task_1", Workspace: mine.Workspace, User: mine.User, Key: key.ID},
			{ID: "task_2", Workspace: mine.Workspace, User: mine.User},
		} {
			_, got := s.Task(t.Context(), foreign)
			if err := errors.Join(s.CancelTask(t.Context(), foreign), s.AnswerTask(t.Context(), foreign, nil)); core.CodeOf(got) != core.CodeNotFound || core.CodeOf(err) != core.CodeNotFound {
				t.Errorf("%+v: %v, %v", foreign, got, err)
			}
		}
		if err := s.DeleteAPIKey(t.Context(), core.DefaultWorkspaceID, people[0].ID, key.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Task(t.Context(), keys); core.CodeOf(err) != core.CodeNotFound {
			t.Errorf("the key was deleted, but its task still exists: %v", err)
		}
		if _, err := s.Task(t.Context(), mine); err != nil {
			t.Error(err)
		}
	})
}

func TestOnlyATasksHolderChangesIt(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		task := startTask(t, s, core.Task{ID: "task_1", User: members(t, s, "alice")[0].ID})
		if claimed, err := s.ClaimTask(t.Context(), task.ID, "b", time.Now().Add(time.Hour)); claimed || err != nil {
			t.Fatalf("a held task should not be claimed: %v, %v", claimed, err)
		}
		task.HeldUntil = time.Now().Add(-time.Second)
		if err := s.UpdateTask(t.Context(), task); err != nil {
			t.Fatal(err)
		}
		if claimed, err := s.ClaimTask(t.Context(), task.ID, "b", time.Now().Add(time.Hour)); !claimed || err != nil {
			t.Fatalf("a task whose server is gone should be claimed: %v, %v", claimed, err)
		}
		task.Status, task.Payload = core.TaskCompleted, json.RawMessage(`{}`)
		if err := s.UpdateTask(t.Context(), task); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.HoldTask(t.Context(), task.ID, "a", time.Now().Add(time.Hour)); core.CodeOf(err) != core.CodeNotFound {
			t.Errorf("the old holder holds it: %v", err)
		}
		if got, _, err := s.HoldTask(t.Context(), task.ID, "b", time.Now().Add(time.Hour)); err != nil || got.Status != core.TaskWorking {
			t.Errorf("the new holder has %+v, %v", got, err)
		}
		if err := s.CancelTask(t.Context(), task); err != nil {
			t.Fatal(err)
		}
		task.Holder = "b"
		if err := s.UpdateTask(t.Context(), task); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Task(t.Context(), task); err != nil || got.Status != core.TaskCancelled || got.Payload != nil {
			t.Errorf("a cancelled task became %+v, %v", got, err)
		}
	})
}

func TestResponsesReachTheHolderOfATaskOnce(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		task := startTask(t, s, core.Task{ID: "task_1", User: members(t, s, "alice")[0].ID})
		ask := func() {
			t.Helper()
			task.Status, task.Payload = core.TaskInputRequired, json.RawMessage(`{"a":{"method":"x"},"b":{"method":"y"}}`)
			if err := s.UpdateTask(t.Context(), task); err != nil {
				t.Fatal(err)
			}
		}
		expect := func(status core.TaskStatus, payload string) {
			t.Helper()
			if got, err := s.Task(t.Context(), task); err != nil || got.Status != status || string(got.Payload) != payload {
				t.Errorf("the task is %s with %s, %v", got.Status, got.Payload, err)
			}
		}
		ask()
		if err := s.AnswerTask(t.Context(), task, map[string]json.RawMessage{"a": json.RawMessage(`{"n":1}`), "never": json.RawMessage(`{}`)}); err != nil {
			t.Fatal(err)
		}
		expect(core.TaskInputRequired, `{"b":{"method":"y"}}`)
		ask() // the app has not received the answer yet
		expect(core.TaskInputRequired, `{"b":{"method":"y"}}`)
		if err := s.AnswerTask(t.Context(), task, map[string]json.RawMessage{"b": json.RawMessage(`{"n":2}`)}); err != nil {
			t.Fatal(err)
		}
		expect(core.TaskWorking, "")
		for _, want := range []string{`{"a":{"n":1},"b":{"n":2}}`, ""} {
			if _, responses, err := s.HoldTask(t.Context(), task.ID, "a", time.Now().Add(time.Hour)); err != nil || string(responses) != want {
				t.Errorf("the holder receives %q, want %q; %v", responses, want, err)
			}
		}
	})
}

func TestAUserHasALimitedNumberOfTasks(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		people := members(t, s, "alice", "bob")
		var last core.Task
		for i := range maxOpenTasks {
			last = startTask(t, s, core.Task{ID: fmt.Sprint("task_", i), User: people[0].ID})
		}
		more := last
		more.ID = "task_more"
		if err := s.StartTask(t.Context(), more); core.CodeOf(err) != core.CodeLimitReached {
			t.Errorf("one more: %v", err)
		}
		startTask(t, s, core.Task{ID: "task_bob", User: people[1].ID})
		last.Status, last.HeldUntil = core.TaskCompleted, time.Now()
		if err := s.UpdateTask(t.Context(), last); err != nil {
			t.Fatal(err)
		}
		if err := s.StartTask(t.Context(), more); err != nil {
			t.Error(err)
		}
		if err := s.db.Exec(t.Context(), "preparing the test", `UPDATE tasks SET expires_at = 1 WHERE user_id = $1`, people[0].ID); err != nil {
			t.Fatal(err)
		}
		if n, err := s.Purge(t.Context(), Retention{}); err != nil || n != maxOpenTasks+1 {
			t.Errorf("%d expired tasks are deleted, %v", n, err)
		}
	})
}
