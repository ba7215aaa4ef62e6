package apps

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

func TestAKilledBundleIsRestartedWithinFiveSeconds(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "victim", harness.Plain)})
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "neighbour", harness.Plain)})
	neighbour := harness.RunningProcesses()[s.PID(t, "neighbour")]
	events := s.Listen(t)

	harness.KillProcess(t, s.PID(t, "victim"))
	killed := time.Now()
	again := map[string]any{"server": "victim", "tool": "echo", "arguments": map[string]any{"text": "again"}}
	if !testkit.Within(harness.Timeout, func() bool { // a call to the dying process fails, and the server does not repeat it
		a := s.Do(t, "POST", "/v1/tools/call", again)
		if a.Status != 200 && a.Object(t)["error"] != "unavailable" {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		return a.Status == 200
	}) {
		t.Error("the app's tools should still work")
	}
	t.Logf("the app's tools answered %v after the kill", time.Since(killed))
	events.Expect(t, `bundle.crashed {"name":"victim","restartAttempt":1}`, `bundle.recovered {"name":"victim"}`)

	// There was no other event, and the other app is still running.
	if a := s.Do(t, "DELETE", "/v1/apps/neighbour", nil); a.Status != 200 {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	events.Expect(t, `bundle.uninstalled {"name":"neighbour"}`)
	if left := harness.Survivors([]harness.Process{neighbour}, 20*time.Second); len(left) > 0 {
		t.Errorf("the uninstalled app is still running: %v", left)
	}
	for _, health := range bundlesHealth(t, s) {
		if health["name"] == "victim" && (health["state"] != "running" || health["restartCount"] != 1.0 || health["uptime"].(float64) <= 0) {
			t.Errorf("/v1/bundles/health: %v", health)
		}
	}
}

func TestACallToABundleThatDiesFailsAtOnceAndIsNotRepeated(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "victim", harness.Plain)})
	pid, file := s.PID(t, "victim"), s.SharedFile("victim", "call")
	ended := s.BeginCall(t.Context(), t, "victim", file)
	if err := os.Remove(file + ".begun"); err != nil {
		t.Fatal(err)
	}
	harness.KillProcess(t, pid)
	select {
	case a := <-ended:
		if a.Status != 503 || a.Object(t)["error"] != "unavailable" || a.Header.Get("Retry-After") == "" || !strings.Contains(a.Body, "not repeated") {
			t.Errorf("%d %v %s", a.Status, a.Header, a.Body)
		}
	case <-time.After(20 * time.Second):
		t.Error("the caller should get an error when the bundle dies, but is still waiting after 20 s")
	}
	s.WaitForStatus(t, "victim", "running")
	s.Call(t, "victim", "echo", map[string]any{"text": "a call that would follow a repetition"})
	if _, err := os.Stat(file + ".begun"); err == nil {
		t.Error("the call was repeated")
	}
}

func TestABundleExitsWithItsShim(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "tree", harness.WithChildren)})
	events, before := s.Listen(t), s.Processes()
	harness.KillProcess(t, harness.RunningProcesses()[s.PID(t, "tree")].Parent)
	events.Expect(t, `bundle.crashed {"name":"tree","restartAttempt":1}`, `bundle.recovered {"name":"tree"}`)
	if left := harness.Survivors(before, 20*time.Second); len(left) > 0 {
		t.Errorf("processes of the killed shim are still running:\n%v", left)
	}
	if result := s.Call(t, "tree", "echo", map[string]any{"text": "again"}); result != "again" {
		t.Errorf("the tool returned %v", result)
	}
}

func TestABundleThatKeepsDyingIsDeadAfterThreeAttempts(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "ill", harness.Poisonable)})
	events := s.Listen(t)
	poison := filepath.Join(s.Home, "apps", "ill", "data", "poison")
	harness.WriteFile(t, poison, "")

	harness.KillProcess(t, s.PID(t, "ill"))
	events.Expect(t,
		`bundle.crashed {"name":"ill","restartAttempt":1}`,
		`bundle.crashed {"name":"ill","restartAttempt":2}`,
		`bundle.crashed {"name":"ill","restartAttempt":3}`)
	dead := events.Next(t)
	if !strings.HasPrefix(dead, `bundle.dead {"message":"all 3 restart attempts failed; `) || !strings.Contains(dead, `"name":"ill"`) || !strings.Contains(dead, "poisoned") {
		t.Errorf("event %s", dead)
	}
	s.WaitForStatus(t, "ill", "dead")
	if a := s.Do(t, "POST", "/v1/tools/call", `{"server":"ill","tool":"echo","arguments":{"text":""}}`); a.Status != 404 && a.Status != 503 {
		t.Errorf("a tool of a dead app: %d %s", a.Status, a.Body)
	}
	if a := s.Do(t, "POST", "/v1/apps/ill/start", nil); a.Status != 500 || a.Object(t)["error"] != "start_failed" || !strings.Contains(a.Body, "poisoned") {
		t.Errorf("starting a broken app: %d %s", a.Status, a.Body)
	}

	if err := os.Remove(poison); err != nil {
		t.Fatal(err)
	}
	if a := s.Do(t, "POST", "/v1/apps/ill/start", nil); a.Status != 200 || a.Body != `{"name":"ill","status":"running"}` {
		t.Fatalf("starting the repaired app: %d %s", a.Status, a.Body)
	}
	if result := s.Call(t, "ill", "echo", map[string]any{"text": "cured"}); result != "cured" {
		t.Errorf("the tool returned %v", result)
	}
}

func bundlesHealth(t *testing.T, s *harness.Server) []map[string]any {
	t.Helper()
	a := s.Do(t, "GET", "/v1/bundles/health", nil)
	return harness.List(t, a)
}
