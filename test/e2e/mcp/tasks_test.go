package mcp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

func TestATaskOfARemoteAppSurvivesItsServer(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	_, url := harness.StartTaskApp(t)
	s.Install(t, map[string]any{"url": url, "serverName": "jobs"})
	handle := s.CallForTask(t, "jobs__slow_compute", map[string]any{"seconds": *harness.LongTask, "label": "after a crash"})
	id := fmt.Sprint(handle["taskId"])
	if handle["resultType"] != "task" || handle["status"] != "working" || strings.HasPrefix(id, "own-") || handle["ttlMs"] != float64(24*60*60*1000) {
		t.Fatalf("the handle: %v", handle)
	}
	s.Kill()
	s.Start()
	done := s.AwaitTask(t, id, "completed", "failed")
	if text := fmt.Sprint(done["result"]); done["status"] != "completed" || !strings.Contains(text, "computed after a crash") {
		t.Errorf("the task ended as %v", done)
	}
	s.Stop()
	s.Start()
	if again := s.Task(t, id); again["status"] != "completed" {
		t.Errorf("after another restart, the task is %v", again)
	}
}

func TestATaskThatTheServerRunsFailsIfTheServerDies(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "jobs", harness.Tasks)})
	slow := s.CallForTask(t, "jobs__wait", map[string]any{"seconds": 600})
	id := fmt.Sprint(slow["taskId"])
	if slow["resultType"] != "task" {
		t.Fatalf("a slow call: %v", slow)
	}
	of := s.CallForTask(t, "jobs__slow_compute", map[string]any{"seconds": 600})
	s.Kill()
	s.Start()
	for id, why := range map[string]string{id: "the server that made the call stopped", fmt.Sprint(of["taskId"]): "Task not found"} {
		failed := s.AwaitTask(t, id, "completed", "failed")
		if failed["status"] != "failed" || !strings.Contains(fmt.Sprint(failed["error"]), why) || !strings.Contains(fmt.Sprint(failed["statusMessage"]), why) {
			t.Errorf("the task ended as %v, want %q", failed, why)
		}
	}
}

func TestATaskRunByTheServerFailsIfTheServerStops(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "jobs", harness.Tasks)})
	_, url := harness.StartTaskApp(t)
	s.Install(t, map[string]any{"url": url, "serverName": "remote"})
	slow := s.CallForTask(t, "jobs__wait", map[string]any{"seconds": 600})
	kept := s.CallForTask(t, "remote__slow_compute", map[string]any{"seconds": 3, "label": "kept"})
	s.Stop()
	s.Start()
	if failed := s.Task(t, fmt.Sprint(slow["taskId"])); failed["status"] != "failed" || !strings.Contains(fmt.Sprint(failed["error"]), "the server was stopped") {
		t.Errorf("a task that the server ran: %v", failed)
	}
	if done := s.AwaitTask(t, fmt.Sprint(kept["taskId"]), "completed", "failed"); done["status"] != "completed" {
		t.Errorf("a task that the app ran: %v", done)
	}
}

func TestASlowCallBecomesATaskAndIsCancelled(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	app, url := harness.StartTaskApp(t)
	s.Install(t, map[string]any{"url": url, "serverName": "jobs"})
	quick := s.CallForTask(t, "jobs__greet", map[string]any{"name": "you"})
	if quick["resultType"] != "complete" || quick["taskId"] != nil {
		t.Errorf("a quick call: %v", quick)
	}
	slow := s.CallForTask(t, "jobs__wait", map[string]any{"seconds": 10}) // a call becomes a task after 5 s
	if done := s.AwaitTask(t, fmt.Sprint(slow["taskId"]), "completed", "failed"); !strings.Contains(fmt.Sprint(done["result"]), "waited") {
		t.Errorf("a slow call: %v", done)
	}
	id := fmt.Sprint(s.CallForTask(t, "jobs__slow_compute", map[string]any{"seconds": 600})["taskId"])
	if ack := s.Stateless(t, "tasks/cancel", id, harness.TaskCapabilities, map[string]any{"taskId": id}); ack["error"] != nil {
		t.Errorf("tasks/cancel failed: %v", ack)
	}
	if task := s.Task(t, id); task["status"] != "cancelled" {
		t.Errorf("the task is %v", task)
	}
	if !testkit.Within(harness.Timeout, func() bool { return app.Cancelled() == 1 }) {
		t.Error("the app's task was not cancelled")
	}
}

func TestAListeningClientReceivesTheStatesOfItsTasks(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	_, url := harness.StartTaskApp(t)
	s.Install(t, map[string]any{"url": url, "serverName": "jobs"})
	listen := func(ids ...string) (granted any, notes []map[string]any) {
		t.Helper()
		all := s.StatelessStream(t, "subscriptions/listen", "", harness.TaskCapabilities, map[string]any{"notifications": map[string]any{"taskIds": ids}})
		if len(all) < 2 || all[0]["method"] != "notifications/subscriptions/acknowledged" || all[len(all)-1]["result"] == nil {
			t.Fatalf("the stream: %v", all)
		}
		for _, message := range all[1 : len(all)-1] {
			params, _ := message["params"].(map[string]any)
			meta, _ := params["_meta"].(map[string]any)
			if message["method"] != "notifications/tasks" || meta["io.modelcontextprotocol/subscriptionId"] != float64(1) {
				t.Errorf("a notification: %v", message)
			}
			notes = append(notes, params)
		}
		return all[0]["params"].(map[string]any)["notifications"].(map[string]any)["taskIds"], notes
	}
	computed := fmt.Sprint(s.CallForTask(t, "jobs__slow_compute", map[string]any{"seconds": 3, "label": "soon"})["taskId"])
	waited := fmt.Sprint(s.CallForTask(t, "jobs__wait", map[string]any{"seconds": 10})["taskId"])
	granted, notes := listen(computed, "task_0", waited, computed)
	if fmt.Sprint(granted) != fmt.Sprint([]string{computed, waited}) {
		t.Errorf("granted: %v", granted)
	}
	last := map[any]map[string]any{}
	for _, note := range notes {
		last[note["taskId"]] = note
	}
	for id, text := range map[string]string{computed: "computed soon", waited: "waited"} {
		task := s.Task(t, id)
		for _, extra := range []string{"resultType", "_meta"} {
			delete(task, extra)
			delete(last[id], extra)
		}
		if fmt.Sprint(last[id]) != fmt.Sprint(task) || task["status"] != "completed" || !strings.Contains(fmt.Sprint(task["result"]), text) {
			t.Errorf("the last notification: %v\ntasks/get: %v", last[id], task)
		}
	}
	if granted, notes := listen(computed); granted == nil || len(notes) != 1 || notes[0]["status"] != "completed" {
		t.Errorf("a completed task: %v, %v", granted, notes)
	}
	if granted, notes := listen("task_0"); granted != nil || notes != nil {
		t.Errorf("an unknown task: %v, %v", granted, notes)
	}
}

func TestAClientWithoutTaskSupportGetsNoTasks(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "jobs", harness.Tasks)})
	call := func(tool string) map[string]any {
		return s.Stateless(t, "tools/call", tool, `{}`, map[string]any{"name": tool, "arguments": map[string]any{"seconds": 6}})
	}
	if answer := fmt.Sprint(call("jobs__wait")["result"]); !strings.Contains(answer, "waited") {
		t.Errorf("a slow call: %s", answer)
	}
	for _, answer := range []map[string]any{
		call("jobs__failing_job"),
		s.Stateless(t, "tasks/get", "task_1", `{}`, map[string]any{"taskId": "task_1"}),
		s.Stateless(t, "subscriptions/listen", "", `{}`, map[string]any{"notifications": map[string]any{"taskIds": []string{"task_1"}}}),
	} {
		failure, _ := answer["error"].(map[string]any)
		if failure["code"] != float64(-32021) || !strings.Contains(fmt.Sprint(failure["data"]), "io.modelcontextprotocol/tasks") {
			t.Errorf("%v", answer)
		}
	}
}

func TestATaskBelongsToItsCaller(t *testing.T) {
	t.Parallel()
	s := serveTenants(t, harness.Tasks, 10, "")
	alice, bob := "Authorization: "+s.tenants[0].bearer, "Authorization: "+s.tenants[1].bearer
	a := s.Do(t, "POST", "/v1/apps/install", map[string]any{"path": harness.GoBundle(t, "jobs", harness.Tasks)}, alice, harness.WorkspaceHeader)
	if a.Status != 200 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	id := fmt.Sprint(s.CallForTask(t, "jobs__slow_compute", map[string]any{"seconds": 600}, alice)["taskId"])
	if task := s.Task(t, id, alice); task["status"] != "working" {
		t.Errorf("the task is %v", task)
	}
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		about := func(id string) string {
			answer := s.Stateless(t, method, id, harness.TaskCapabilities, map[string]any{"taskId": id, "inputResponses": map[string]any{}}, bob)
			return strings.ReplaceAll(fmt.Sprint(answer), id, "ID")
		}
		if foreign, unknown := about(id), about("task_0"); foreign != unknown || !strings.Contains(foreign, "-32602") {
			t.Errorf("%s for another user's task: %s\nfor an unknown task: %s", method, foreign, unknown)
		}
	}
	listen := map[string]any{"notifications": map[string]any{"taskIds": []string{id}}}
	if all := s.StatelessStream(t, "subscriptions/listen", "", harness.TaskCapabilities, listen, bob); len(all) != 2 || strings.Contains(fmt.Sprint(all), id) {
		t.Errorf("listening for another user's task: %v", all)
	}
	if task := s.Task(t, id, alice); task["status"] != "working" {
		t.Errorf("after bob's requests, the task is %v", task)
	}
}
