package cluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

func TestATaskSurvivesTheLossOfAServer(t *testing.T) {
	t.Parallel()
	database := harness.Databases.New(t)
	share := func(s *harness.Server) { s.Database = database }
	url := harness.Config("storage: {url: '" + database + "'}\n")
	a, b := harness.Serve(t, share, url), harness.Serve(t, share, url)
	_, address := harness.StartTaskApp(t)
	a.Install(t, map[string]any{"url": address, "serverName": "jobs"})
	b.WaitForStatus(t, "jobs", "running")
	id := fmt.Sprint(a.CallForTask(t, "jobs__slow_compute", map[string]any{"seconds": *harness.LongTask, "label": "elsewhere"})["taskId"])
	own := fmt.Sprint(a.CallForTask(t, "jobs__wait", map[string]any{"seconds": 600})["taskId"])
	asked := fmt.Sprint(a.CallForTask(t, "jobs__confirm_delete", nil)["taskId"])
	if task := b.Task(t, own); task["status"] != "working" {
		t.Errorf("on the other server, the task is %v", task)
	}
	b.AwaitTask(t, asked, "input_required")
	answer := map[string]any{"taskId": asked, "inputResponses": map[string]any{"confirm": map[string]any{"action": "accept", "content": map[string]any{}}}}
	if ack := b.Stateless(t, "tasks/update", asked, harness.TaskCapabilities, answer); ack["error"] != nil {
		t.Errorf("tasks/update failed: %v", ack)
	}
	if done := b.AwaitTask(t, asked, "completed", "failed"); done["status"] != "completed" {
		t.Errorf("after an answer on the other server, the task ended as %v", done)
	}
	a.Kill()
	if done := b.AwaitTask(t, id, "completed", "failed"); done["status"] != "completed" || !strings.Contains(fmt.Sprint(done["result"]), "computed elsewhere") {
		t.Errorf("the app's task ended as %v", done)
	}
	if failed := b.AwaitTask(t, own, "completed", "failed"); !strings.Contains(fmt.Sprint(failed["error"]), "the server that made the call stopped") {
		t.Errorf("the call of the killed server ended as %v", failed)
	}
}
