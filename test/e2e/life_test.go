package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// pid asks a Go bundle for its process id, and returns the one that this machine knows it by: an app
// has process ids of its own in its sandbox.
func (s *server) pid(t *testing.T, app string) int {
	t.Helper()
	inside := s.call(t, app, "environment", nil).(map[string]any)
	id := strconv.Itoa(int(inside["pid"].(float64)))
	for _, p := range descendants(s.cmd.Process.Pid) {
		dir := "/proc/" + strconv.Itoa(p.id)
		environ, _ := os.ReadFile(dir + "/environ")
		status, _ := os.ReadFile(dir + "/status")
		_, ids, _ := strings.Cut(string(status), "NSpid:")
		ids, _, _ = strings.Cut(ids, "\n")
		if all := strings.Fields(ids); len(all) > 0 && all[len(all)-1] == id && strings.Contains(string(environ), "/apps/"+app+"/data") {
			return p.id
		}
	}
	t.Fatalf("no process of %s has the id %s", app, id)
	return 0
}

// shared is a file that the test and an app both may use: it lies in the app's data directory.
func (s *server) shared(app, name string) string {
	return filepath.Join(s.home, "apps", app, "data", name)
}

func killProcess(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

func TestAKilledBundleIsBackBeforeAnybodyMissesIt(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.install(t, map[string]any{"path": goBundle(t, "victim", plain)})
	s.install(t, map[string]any{"path": goBundle(t, "neighbour", plain)})
	neighbour := census()[s.pid(t, "neighbour")]
	events := s.listen(t)

	killProcess(t, s.pid(t, "victim"))
	killed := time.Now()
	again := map[string]any{"server": "victim", "tool": "echo", "arguments": map[string]any{"text": "again"}}
	if !eventually(patience, func() bool { // a call that meets the dying process is notified so, and not repeated
		a := s.do(t, "POST", "/v1/tools/call", again)
		if a.status != 200 && a.object(t)["error"] != "unavailable" {
			t.Fatalf("%d %s", a.status, a.body)
		}
		return a.status == 200
	}) {
		t.Error("its tools do not answer any more")
	}
	if took := time.Since(killed); took > 5*time.Second {
		t.Errorf("its tools answered %v after the kill", took)
	} else {
		t.Logf("its tools answered %v after the kill", took)
	}
	events.expect(t, `bundle.crashed {"name":"victim","restartAttempt":1}`, `bundle.recovered {"name":"victim"}`)

	// Nothing else was notified, and nobody else was touched.
	if a := s.do(t, "DELETE", "/v1/apps/neighbour", nil); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
	events.expect(t, `bundle.uninstalled {"name":"neighbour"}`)
	if left := survivors([]process{neighbour}, time.Second); len(left) > 0 {
		t.Errorf("the uninstalled app lives: %v", left)
	}
	for _, health := range s.bundlesHealth(t) {
		if health["name"] == "victim" && (health["state"] != "running" || health["restartCount"] != 1.0 || health["uptime"].(float64) <= 0) {
			t.Errorf("/v1/bundles/health: %v", health)
		}
	}
}

// begin starts a call that lasts until its file appears, and waits until the tool is at it.
func (s *server) begin(ctx context.Context, t *testing.T, app, file string) (ended <-chan answer) {
	t.Helper()
	body := fmt.Sprintf(`{"server":%q,"tool":"last","arguments":{"text":%q}}`, app, file)
	req, err := http.NewRequestWithContext(ctx, "POST", s.url+"/v1/tools/call", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	done := make(chan answer, 1)
	go func() {
		if resp, err := http.DefaultClient.Do(req); err == nil {
			defer resp.Body.Close()
			raw, _ := io.ReadAll(resp.Body)
			done <- answer{resp.StatusCode, resp.Header, string(raw)}
		}
	}()
	if !eventually(patience, func() bool { _, err := os.Stat(file + ".begun"); return err == nil }) {
		t.Fatal("the call did not begin")
	}
	return done
}

func TestACallInFlightWhenItsBundleDiesFailsAtOnceAndIsNotRepeated(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.install(t, map[string]any{"path": goBundle(t, "victim", plain)})
	pid, file := s.pid(t, "victim"), s.shared("victim", "call")
	ended := s.begin(t.Context(), t, "victim", file)
	if err := os.Remove(file + ".begun"); err != nil {
		t.Fatal(err)
	}
	killProcess(t, pid)
	select {
	case a := <-ended:
		if a.status != 503 || a.object(t)["error"] != "unavailable" || a.header.Get("Retry-After") == "" || !strings.Contains(a.body, "not repeated") {
			t.Errorf("%d %v %s", a.status, a.header, a.body)
		}
	case <-time.After(time.Second):
		t.Error("the caller waits 1 s after the bundle's death")
	}
	s.reaches(t, "victim", "running")
	s.call(t, "victim", "echo", map[string]any{"text": "a call after which a repeated one would have begun"})
	if _, err := os.Stat(file + ".begun"); err == nil {
		t.Error("the call was repeated")
	}
}

func TestACallIsCancelledWhenItsCallerLeaves(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.install(t, map[string]any{"path": goBundle(t, "patient", plain)})
	ctx, leave := context.WithCancel(t.Context())
	file := s.shared("patient", "call")
	s.begin(ctx, t, "patient", file)
	leave()
	if !eventually(5*time.Second, func() bool { _, err := os.Stat(file + ".cancelled"); return err == nil }) {
		t.Error("5 s after its caller left the tool is still at it")
	}
	s.call(t, "patient", "echo", map[string]any{"text": "and it goes on"})
}

func TestAKilledShimTakesItsBundleAlong(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.install(t, map[string]any{"path": goBundle(t, "tree", family)})
	events, before := s.listen(t), s.family()
	killProcess(t, census()[s.pid(t, "tree")].parent)
	events.expect(t, `bundle.crashed {"name":"tree","restartAttempt":1}`, `bundle.recovered {"name":"tree"}`)
	if left := survivors(before, time.Second); len(left) > 0 {
		t.Errorf("of the tree whose shim was killed these live:\n%v", left)
	}
	if answer := s.call(t, "tree", "echo", map[string]any{"text": "again"}); answer != "again" {
		t.Errorf("the tool answered %v", answer)
	}
}

func TestABundleThatAlwaysDiesIsDeadAfterThreeAttempts(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.install(t, map[string]any{"path": goBundle(t, "ill", mortal)})
	events := s.listen(t)
	poison := filepath.Join(s.home, "apps", "ill", "data", "poison")
	write(t, poison, "")

	killProcess(t, s.pid(t, "ill"))
	events.expect(t,
		`bundle.crashed {"name":"ill","restartAttempt":1}`,
		`bundle.crashed {"name":"ill","restartAttempt":2}`,
		`bundle.crashed {"name":"ill","restartAttempt":3}`)
	dead := events.next(t)
	if !strings.HasPrefix(dead, `bundle.dead {"message":"all 3 restart attempts failed; `) || !strings.Contains(dead, `"name":"ill"`) || !strings.Contains(dead, "poisoned") {
		t.Errorf("event %s", dead)
	}
	s.reaches(t, "ill", "dead")
	if a := s.do(t, "POST", "/v1/tools/call", `{"server":"ill","tool":"echo","arguments":{"text":""}}`); a.status != 404 && a.status != 503 {
		t.Errorf("a tool of a dead app: %d %s", a.status, a.body)
	}
	if a := s.do(t, "POST", "/v1/apps/ill/start", nil); a.status != 500 || a.object(t)["error"] != "start_failed" || !strings.Contains(a.body, "poisoned") {
		t.Errorf("start of what cannot start: %d %s", a.status, a.body)
	}

	if err := os.Remove(poison); err != nil {
		t.Fatal(err)
	}
	if a := s.do(t, "POST", "/v1/apps/ill/start", nil); a.status != 200 || a.body != `{"name":"ill","status":"running"}` {
		t.Fatalf("start of what is cured: %d %s", a.status, a.body)
	}
	if answer := s.call(t, "ill", "echo", map[string]any{"text": "cured"}); answer != "cured" {
		t.Errorf("the tool answered %v", answer)
	}
}

func TestAKilledServerLeavesNothingRunningAndForgetsNothing(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for _, name := range []string{"one", "two", "three"} {
		s.install(t, map[string]any{"path": goBundle(t, name, family)})
	}
	s.install(t, map[string]any{"path": goBundle(t, "rests", plain)})
	if a := s.do(t, "POST", "/v1/apps/rests/stop", nil); a.status != 200 || a.body != `{"name":"rests","status":"stopped"}` {
		t.Fatalf("stop: %d %s", a.status, a.body)
	}
	if a := s.do(t, "DELETE", "/v1/apps/three", nil); a.status != 200 {
		t.Fatalf("uninstall: %d %s", a.status, a.body)
	}

	before := s.family()
	if len(before) < 2*4 { // each a shim, a bundle and two leaves
		t.Fatalf("only these run:\n%v", before)
	}
	s.kill()
	if left := survivors(before, time.Second); len(left) > 0 {
		t.Errorf("1 s after the server was killed these live:\n%v", left)
	}
	if left := mentioning(s.home); len(left) > 0 {
		t.Errorf("1 s after the server was killed these live:\n%v", left)
	}

	s.start()
	s.reaches(t, "one", "running")
	s.reaches(t, "two", "running")
	now := s.apps(t)
	if len(now) != 3 || now["rests"].Status != "stopped" || now["one"].ToolCount != goTools {
		t.Errorf("after the new start: %+v", now)
	}
	if answer := s.call(t, "two", "echo", map[string]any{"text": "back"}); answer != "back" {
		t.Errorf("the tool answered %v", answer)
	}
}

func TestAStoppedAppIsGoneWithAllItsProcessesAndKeepsItsData(t *testing.T) {
	t.Parallel()
	s := serve(t)
	dir := goBundle(t, "tree", family)
	s.install(t, map[string]any{"path": dir})
	kept := filepath.Join(s.home, "apps", "tree", "data", "kept")
	write(t, kept, "")
	for _, command := range []struct{ method, path string }{{"POST", "/v1/apps/tree/stop"}, {"DELETE", "/v1/apps/tree"}} {
		before := s.family()
		if len(before) < 4 { // the shim, the bundle and its two leaves
			t.Fatalf("only these run:\n%v", before)
		}
		if a := s.do(t, command.method, command.path, nil); a.status != 200 {
			t.Fatalf("%s: %d %s", command.path, a.status, a.body)
		}
		if left := survivors(before, time.Second); len(left) > 0 {
			t.Errorf("after %s these live:\n%v", command.path, left)
		}
		if a := s.do(t, "POST", "/v1/apps/tree/start", nil); a.status != map[string]int{"POST": 200, "DELETE": 404}[command.method] {
			t.Errorf("start after %s: %d %s", command.path, a.status, a.body)
		}
	}
	s.install(t, map[string]any{"path": dir})
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("the data of an app that was uninstalled: %v", err)
	}
}

func TestSIGTERMLetsTheCallInFlightFinish(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.install(t, map[string]any{"path": goBundle(t, "slow", family)})
	s.listen(t) // a stream that is open must not keep the server
	before := s.family()
	file := s.shared("slow", "go on")
	answered := s.begin(t.Context(), t, "slow", file)

	notified := time.Now()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if !eventually(patience, func() bool { return strings.Contains(s.log.String(), "server shutting down") }) {
		t.Fatal("the server did not hear SIGTERM")
	}
	write(t, file, "")
	if a := <-answered; a.status != 200 || a.object(t)["result"] != "lasted" {
		t.Errorf("the call in flight: %d %s", a.status, a.body)
	}
	if status := s.terminate(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	if took := time.Since(notified); took > 26*time.Second {
		t.Errorf("the server took %v to end", took)
	}
	if left := survivors(before, time.Second); len(left) > 0 {
		t.Errorf("these are left:\n%v", left)
	}
}

func TestABadAndAHangingAppDelayNobodyAtTheStart(t *testing.T) {
	t.Parallel()
	s := serve(t, func(s *server) {
		s.t.Helper()
		config("apps:\n" +
			"  hangs: {path: " + goBundle(t, "hangs", mute) + "}\n" +
			"  bad: {path: " + goBundle(t, "bad", broken) + "}\n" +
			"  missing: {path: /does/not/exist}\n" +
			"  good: {path: " + goBundle(t, "another-name", plain) + ", protected: true}\n")(s)
	})
	if a := s.do(t, "GET", "/v1/health", nil); a.status != 200 {
		t.Errorf("health right after the start: %d", a.status)
	}
	started := time.Now()
	s.reaches(t, "good", "running")
	if took := time.Since(started); took > 5*time.Second {
		t.Errorf("the good app took %v beside a hanging and a bad one", took)
	}
	if answer := s.call(t, "good", "echo", map[string]any{"text": "hello"}); answer != "hello" {
		t.Errorf("the tool answered %v", answer)
	}
	apps := s.apps(t)
	if apps["hangs"].Status != "starting" || apps["missing"].Status != "dead" || len(apps) != 4 {
		t.Errorf("%+v", apps)
	}
	if a := s.do(t, "DELETE", "/v1/apps/good", nil); a.status != 403 || a.object(t)["error"] != "protected" {
		t.Errorf("uninstall of a protected app: %d %s", a.status, a.body)
	}
	s.reaches(t, "bad", "dead")
	if a := s.do(t, "POST", "/v1/apps/hangs/stop", nil); a.status != 200 || a.body != `{"name":"hangs","status":"stopped"}` {
		t.Errorf("stop of a hanging app: %d %s", a.status, a.body)
	}
}

func (s *server) bundlesHealth(t *testing.T) []map[string]any {
	t.Helper()
	a := s.do(t, "GET", "/v1/bundles/health", nil)
	return list(t, a)
}
