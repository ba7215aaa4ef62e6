package apps

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

func TestACallIsCancelledWhenItsCallerDisconnects(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "patient", harness.Plain)})
	ctx, leave := context.WithCancel(t.Context())
	file := s.SharedFile("patient", "call")
	s.BeginCall(ctx, t, "patient", file)
	leave()
	if !testkit.Within(harness.Timeout, func() bool { _, err := os.Stat(file + ".cancelled"); return err == nil }) {
		t.Error("the tool should stop when its caller disconnects")
	}
	s.Call(t, "patient", "echo", map[string]any{"text": "and it continues"})
}

func TestACallToASilentAppIsCancelledAfterTheConfiguredTime(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.Config("tools: {callTimeoutSeconds: 2}\n"))
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "patient", harness.Plain)})
	file := s.SharedFile("patient", "call")
	a := <-s.BeginCall(t.Context(), t, "patient", file)
	if a.Status != 503 || !strings.Contains(a.Body, "within 2s (tools.callTimeoutSeconds)") {
		t.Errorf("got %d %s, want 503 with the setting", a.Status, a.Body)
	}
	if !testkit.Within(harness.Timeout, func() bool { _, err := os.Stat(file + ".cancelled"); return err == nil }) {
		t.Error("the tool should stop when its call is cancelled")
	}
}

func TestAnAppsMemoryIsShownWhileItRuns(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "calc", harness.Plain)})
	memory := func() *int64 {
		var details struct{ MemoryBytes *int64 }
		if err := json.Unmarshal([]byte(s.Do(t, "GET", "/v1/apps/calc", nil).Body), &details); err != nil {
			t.Fatal(err)
		}
		return details.MemoryBytes
	}
	if held := memory(); held == nil || *held < 1<<20 || *held > 1<<30 {
		t.Errorf("a running app uses %v bytes", held)
	}
	if a := s.Do(t, "POST", "/v1/apps/calc/stop", nil); a.Status != 200 {
		t.Fatalf("stop: %d %s", a.Status, a.Body)
	}
	if held := memory(); held != nil {
		t.Errorf("a stopped app uses %d bytes", *held)
	}
}

func TestAKilledServerLeavesNoProcessAndKeepsItsState(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	for _, name := range []string{"one", "two", "three"} {
		s.Install(t, map[string]any{"path": harness.GoBundle(t, name, harness.WithChildren)})
	}
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "rests", harness.Plain)})
	if a := s.Do(t, "POST", "/v1/apps/rests/stop", nil); a.Status != 200 || a.Body != `{"name":"rests","status":"stopped"}` {
		t.Fatalf("stop: %d %s", a.Status, a.Body)
	}
	if a := s.Do(t, "DELETE", "/v1/apps/three", nil); a.Status != 200 {
		t.Fatalf("uninstall: %d %s", a.Status, a.Body)
	}

	before := s.Processes()
	if len(before) < 2*4 { // each app has four: the shim, the bundle and two child processes
		t.Fatalf("only these processes are running:\n%v", before)
	}
	s.Kill()
	if left := harness.Survivors(before, 20*time.Second); len(left) > 0 {
		t.Errorf("long after the server was killed, these processes are running:\n%v", left)
	}
	if left := harness.Survivors(harness.ProcessesFor(s.Home), 20*time.Second); len(left) > 0 {
		t.Errorf("long after the server was killed, these processes are running:\n%v", left)
	}

	s.Start()
	s.WaitForStatus(t, "one", "running")
	s.WaitForStatus(t, "two", "running")
	now := s.Apps(t)
	if len(now) != 3 || now["rests"].Status != "stopped" || now["one"].ToolCount != harness.GoTools {
		t.Errorf("after the restart: %+v", now)
	}
	if result := s.Call(t, "two", "echo", map[string]any{"text": "back"}); result != "back" {
		t.Errorf("the tool returned %v", result)
	}
}

func TestAStoppedAppHasNoProcessesAndKeepsItsData(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	dir := harness.GoBundle(t, "tree", harness.WithChildren)
	s.Install(t, map[string]any{"path": dir})
	kept := filepath.Join(s.Home, "apps", "tree", "data", "kept")
	harness.WriteFile(t, kept, "")
	for _, command := range []struct{ method, path string }{{"POST", "/v1/apps/tree/stop"}, {"DELETE", "/v1/apps/tree"}} {
		before := s.Processes()
		if len(before) < 4 { // the shim, the bundle and two child processes
			t.Fatalf("only these processes are running:\n%v", before)
		}
		if a := s.Do(t, command.method, command.path, nil); a.Status != 200 {
			t.Fatalf("%s: %d %s", command.path, a.Status, a.Body)
		}
		if left := harness.Survivors(before, 20*time.Second); len(left) > 0 {
			t.Errorf("after %s, these processes are still running:\n%v", command.path, left)
		}
		if a := s.Do(t, "POST", "/v1/apps/tree/start", nil); a.Status != map[string]int{"POST": 200, "DELETE": 404}[command.method] {
			t.Errorf("start after %s: %d %s", command.path, a.Status, a.Body)
		}
	}
	s.Install(t, map[string]any{"path": dir})
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("the data of the uninstalled app: %v", err)
	}
}

func TestABrokenAppDoesNotDelayOthersAtStart(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, func(s *harness.Server) {
		s.T.Helper()
		harness.Config("apps:\n" +
			"  hangs: {path: " + harness.GoBundle(t, "hangs", harness.Silent) + ", startTimeoutSeconds: 600}\n" +
			"  bad: {path: " + harness.GoBundle(t, "bad", harness.Broken) + "}\n" +
			"  missing: {path: /does/not/exist}\n" +
			"  good: {path: " + harness.GoBundle(t, "another-name", harness.Plain) + ", protected: true}\n")(s)
	})
	if a := s.Do(t, "GET", "/v1/health", nil); a.Status != 200 {
		t.Errorf("health right after the start: %d", a.Status)
	}
	s.WaitForStatus(t, "good", "running")
	s.WaitForStatus(t, "missing", "dead")
	if result := s.Call(t, "good", "echo", map[string]any{"text": "hello"}); result != "hello" {
		t.Errorf("the tool returned %v", result)
	}
	apps := s.Apps(t)
	if apps["hangs"].Status != "starting" || len(apps) != 4 {
		t.Errorf("%+v", apps)
	}
	if a := s.Do(t, "DELETE", "/v1/apps/good", nil); a.Status != 403 || a.Object(t)["error"] != "protected" {
		t.Errorf("uninstall of a protected app: %d %s", a.Status, a.Body)
	}
	s.WaitForStatus(t, "bad", "dead")
	if a := s.Do(t, "POST", "/v1/apps/hangs/stop", nil); a.Status != 200 || a.Body != `{"name":"hangs","status":"stopped"}` {
		t.Errorf("stop of a hanging app: %d %s", a.Status, a.Body)
	}
}

func TestAnIdleAppHasNoProcessButStillAnswersCalls(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	before := len(s.Processes())
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "calc", harness.Plain)})
	tools := s.Do(t, "GET", "/v1/tools", nil).Body
	events := s.Listen(t)
	s.MustReload(t, "apps: {calc: {idle: 1s}}\n", "apps")
	asleep := func() bool {
		return s.Do(t, "GET", "/v1/apps/calc", nil).Object(t)["asleep"] == true
	}
	for range 2 {
		testkit.Eventually(t, "the app sleeps", asleep)
		testkit.Eventually(t, "the app's processes have exited", func() bool { return len(s.Processes()) == before })
		s.WaitForStatus(t, "calc", "running")
		if now := s.Do(t, "GET", "/v1/tools", nil).Body; now != tools {
			t.Errorf("the tools of a sleeping app are\n%s\nwant\n%s", now, tools)
		}
		output, status := harness.Command(t, []string{"ROPEWALK_SERVER=" + s.URL, "ROPEWALK_HOME=" + s.Home}, "app", "list")
		if status != 0 || !strings.Contains(output, "running (asleep)") {
			t.Errorf("app list: %d %s", status, output)
		}
		if metrics := s.Do(t, "GET", "/v1/metrics", nil).Body; !strings.Contains(metrics, "ropewalk_apps_asleep 1\n") {
			t.Errorf("metrics:\n%s", metrics)
		}
		s.Call(t, "calc", "echo", map[string]any{"text": "good morning"})
	}
	s.Do(t, "POST", "/v1/apps/calc/stop", nil)
	if got := events.NextOutcome(t); !strings.HasPrefix(got, "bundle.stopped") {
		t.Errorf("the first event is %s, not bundle.stopped", got)
	}
}

func TestTheGlobalIdleLimitAppliesToAppsInstalledLater(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.Config("idle: 1s\napps: {awake: {idle: never}}\n"))
	for _, name := range []string{"awake", "calc"} {
		s.Install(t, map[string]any{"path": harness.GoBundle(t, name, harness.Plain)})
	}
	asleep := func(name string) bool { return s.Do(t, "GET", "/v1/apps/"+name, nil).Object(t)["asleep"] == true }
	for range 2 {
		testkit.Eventually(t, "the app sleeps", func() bool { return asleep("calc") })
		s.Call(t, "calc", "echo", map[string]any{"text": "good morning"})
	}
	if asleep("awake") {
		t.Error("an app with idle: never should not be asleep")
	}
}

// packed packs a bundle directory into a file. The server checks the checksums of an app installed from a file at each
// start.
func packed(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "app.mcpb")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	archive := zip.NewWriter(file)
	if err := errors.Join(archive.AddFS(os.DirFS(dir)), archive.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAServerThatRestartsListsSleepingAppsAndStartsNone(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.Config("idle: 1s\n"))
	alone := len(s.Processes())
	s.Install(t, map[string]any{"path": packed(t, harness.GoBundle(t, "calc", harness.Plain))})
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "notes", harness.Plain)}) // the server uses this directory in place
	tools := s.Do(t, "GET", "/v1/tools", nil).Body
	asleep := func(name string) bool { return s.Do(t, "GET", "/v1/apps/"+name, nil).Object(t)["asleep"] == true }
	testkit.Eventually(t, "both apps sleep", func() bool { return asleep("calc") && asleep("notes") })
	for _, end := range []func(){func() { s.Stop() }, s.Kill} {
		end()
		s.Start()
		if now := s.Do(t, "GET", "/v1/tools", nil).Body; now != tools || !strings.Contains(now, "notes__echo") {
			t.Errorf("after the restart, the tools are\n%s\nwant\n%s", now, tools)
		}
		if got := len(s.Processes()); got != alone || !asleep("calc") || !asleep("notes") {
			t.Errorf("after the restart, %d processes are running, want %d; asleep: calc %v, notes %v", got, alone, asleep("calc"), asleep("notes"))
		}
		s.Call(t, "calc", "echo", map[string]any{"text": "good morning"})
		if !asleep("notes") {
			t.Error("the call should not wake another app")
		}
		testkit.Eventually(t, "the app sleeps again", func() bool { return asleep("calc") })
	}
}

// manyApps returns a configuration that declares n apps named app-0 and so on, all with the same bundle. settings is
// the start of the apps section.
func manyApps(t *testing.T, n int, settings string) (config string, names []string) {
	t.Helper()
	path := harness.GoBundle(t, "calc", harness.Plain)
	config = "apps:\n" + settings
	for i := range n {
		names = append(names, fmt.Sprintf("app-%d", i))
		config += fmt.Sprintf("  %s: {path: %q}\n", names[i], path)
	}
	return config, names
}

func TestARestartNeitherStartsNorUpdatesDeclaredAppsThatAreUnchanged(t *testing.T) {
	t.Parallel()
	config, names := manyApps(t, 5, "")
	s := harness.Serve(t, harness.Config(config))
	for _, name := range names {
		s.WaitForStatus(t, name, "running")
	}
	for _, end := range []func(){s.Kill, func() { s.Stop() }} {
		end()
		s.Start()
		for _, name := range names {
			if a := s.Do(t, "GET", "/v1/apps/"+name, nil).Object(t); a["status"] != "running" || a["asleep"] != true {
				t.Errorf("after the restart, %s is %v", name, a)
			}
		}
		if strings.Contains(s.Log.String(), "app updated") {
			t.Error("the restart should not update an app whose declaration and bundle have not changed")
		}
	}
}

func TestCallsToAllAppsWorkWithFewAwake(t *testing.T) {
	t.Parallel()
	config, names := manyApps(t, 6, "  maxAwake: 2\n")
	s := harness.Serve(t, harness.Config(config))
	awake := func() (count int) {
		for _, a := range s.Apps(t) {
			if a.Status == "running" && !a.Asleep {
				count++
			}
		}
		return count
	}
	for _, name := range names {
		s.WaitForStatus(t, name, "running")
	}
	for i := range 24 {
		s.Call(t, names[i*5%len(names)], "echo", map[string]any{"text": "good morning"})
	}
	testkit.Eventually(t, "two apps are awake", func() bool { return awake() == 2 })
}
