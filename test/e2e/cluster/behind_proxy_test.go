package cluster

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// Changes made through one of three servers behind a proxy apply to all of them. When a server dies, only its
// own calls fail.
func TestThreeServersBehindNginxActAsOne(t *testing.T) {
	d := startCluster(t, harness.Env("ANTHROPIC_API_KEY=not-asked"))
	for _, part := range []struct {
		name string
		test func(*testing.T, *cluster)
	}{
		{"an app installed through one server is listed and callable through all", testInstall},
		{"exactly one of several concurrent installs of a name wins", testInstallRace},
		{"events on one server reach the streams of all", testEvents},
		{"a stop, a start and an uninstall apply to all", testCommands},
		{"changes through one server apply to the next request to another", testReadYourWrites},
		{"a change to members applies to all", testWorkspaces},
		{"a skill and the selected models apply to all", testSettings},
		{"a session goes to the server that has it", testSessionRouting},
		{"clients without sessions are spread over all", testStatelessSpread},
		{"a client without a session is asked, and any server accepts its answer", testStatelessQuestions},
		{"the official client is served in both revisions", testOfficialClients},
		{"a server that is killed under load loses only its own calls", testServerLoss},
		{"a server that comes back catches up", testServerReturn},
		{"Caddy works like nginx", testBehindCaddy},
	} {
		if !t.Run(part.name, func(t *testing.T) { part.test(t, d) }) {
			return
		}
	}
}

// callWorker calls the tool named work on a server.
func callWorker(t *testing.T, s *harness.Server, app, text string) harness.Response {
	t.Helper()
	return s.Do(t, "POST", "/v1/tools/call", map[string]any{"server": app, "tool": "work", "arguments": map[string]any{"text": text}})
}

func testInstall(t *testing.T, d *cluster) {
	dir := harness.GoBundle(t, "worker", harness.Worker)
	d.servers[0].Install(t, map[string]any{"path": dir})
	if err := os.RemoveAll(dir); err != nil { // as if the directory were on the disk of one machine only
		t.Fatal(err)
	}
	waitFor(t, "all servers list the app", func() bool {
		return !slices.ContainsFunc(d.servers, func(s *harness.Server) bool { return s.Apps(t)["worker"].Name == "" })
	})
	waitFor(t, "the app can be called through all servers", func() bool { // if the app is still starting, the call waits
		for i, s := range d.servers {
			if a := callWorker(t, s, "worker", "first"); a.Status != 200 {
				t.Fatalf("the first call on %s: %d %s", serverNames[i], a.Status, a.Body)
			}
		}
		return true
	})
	answered := map[string]int{}
	for i := range 30 {
		a := callWorker(t, d.proxy, "worker", fmt.Sprint("through nginx ", i))
		if a.Status != 200 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		answered[d.serverOf(t, a.Body)]++
	}
	t.Logf("30 calls through nginx were answered by %v", answered)
	if len(answered) != len(d.servers) {
		t.Errorf("nginx did not use all servers for 30 calls: %v", answered)
	}
	for i, s := range d.servers {
		if got := d.serverOf(t, callWorker(t, s, "worker", "whose").Body); got != serverNames[i] {
			t.Errorf("a call to %s was answered by the process of %s", serverNames[i], got)
		}
	}
}

func testInstallRace(t *testing.T, d *cluster) {
	dir := harness.GoBundle(t, "wanted", harness.Plain)
	statuses := make([]int, 9)
	var asking sync.WaitGroup
	for i := range statuses {
		asking.Go(func() {
			a := d.servers[i%len(d.servers)].Do(t, "POST", "/v1/apps/install", map[string]any{"path": dir})
			if statuses[i] = a.Status; a.Status == 409 && a.Object(t)["error"] != "already_installed" || a.Status != 200 && a.Status != 409 {
				t.Errorf("%d %s", a.Status, a.Body)
			}
		})
	}
	asking.Wait()
	slices.Sort(statuses)
	if !slices.Equal(statuses, []int{200, 409, 409, 409, 409, 409, 409, 409, 409}) {
		t.Errorf("statuses %v", statuses)
	}
	for _, s := range d.servers {
		s.WaitForStatus(t, "wanted", "running")
		if text := s.Call(t, "wanted", "echo", map[string]any{"text": "hello"}); text != "hello" {
			t.Errorf("echo returned %v", text)
		}
	}
}

func testEvents(t *testing.T, d *cluster) {
	readers := map[string]*harness.EventReader{"through nginx": d.proxy.Listen(t)}
	for i, s := range d.servers {
		readers["of "+serverNames[i]] = s.Listen(t)
	}
	d.servers[1].Install(t, map[string]any{"path": harness.GoBundle(t, "news", harness.Plain)})
	got := map[string][]string{}
	for i, s := range d.servers {
		who := "of " + serverNames[i]
		got[who] = []string{readers[who].NextOutcome(t)}
		if s.Apps(t)["news"].Name == "" {
			t.Errorf("the reader %s got %s, but the server does not list the app", who, got[who])
		}
	}
	waitFor(t, "the app runs on all servers", func() bool {
		return !slices.ContainsFunc(d.servers, func(s *harness.Server) bool { return s.Apps(t)["news"].Status != "running" })
	})
	harness.KillProcess(t, d.servers[2].PID(t, "news")) // PID makes a call as a person, so no event is published
	if !testkit.Within(harness.Timeout, func() bool {
		a := d.servers[2].Do(t, "GET", "/v1/bundles/health", nil)
		return slices.ContainsFunc(harness.List(t, a), func(b map[string]any) bool {
			return b["name"] == "news" && b["restartCount"] == 1.0 && b["state"] == "running"
		})
	}) {
		t.Fatal("the app was not restarted")
	}
	session := d.servers[2].SessionHeader(t)
	if a := d.servers[2].Do(t, "POST", "/mcp", toolsCall("news__environment", "{}"), harness.WorkspaceHeader, harness.AcceptHeader, session); a.Status != 200 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if a := d.servers[2].Do(t, "DELETE", "/v1/apps/news", nil); a.Status != 200 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	for who, reader := range readers {
		events := got[who]
		for len(events) == 0 || !strings.HasPrefix(events[len(events)-1], "bundle.uninstalled ") {
			events = append(events, reader.NextOutcome(t))
		}
		count := map[string]int{}
		for _, e := range events {
			name, _, _ := strings.Cut(e, " ")
			count[name]++
		}
		for _, name := range []string{"bundle.installed", "bundle.crashed", "bundle.recovered", "data.changed", "bundle.uninstalled"} {
			if count[name] != 1 {
				t.Errorf("the reader %s got %s %d times: %q", who, name, count[name], events)
			}
		}
	}
}

func testCommands(t *testing.T, d *cluster) {
	command := func(i int, method, path, want string) {
		t.Helper()
		if a := d.servers[i].Do(t, method, path, nil); a.Status != 200 {
			t.Fatalf("%s %s: %d %s", method, path, a.Status, a.Body)
		}
		waitFor(t, method+" "+path, func() bool {
			return !slices.ContainsFunc(d.servers, func(s *harness.Server) bool { return s.Apps(t)["wanted"].Status != want })
		})
	}
	command(0, "POST", "/v1/apps/wanted/stop", "stopped")
	if a := d.servers[1].Do(t, "POST", "/v1/tools/call", `{"server":"wanted","tool":"echo"}`); a.Status != 503 || a.Object(t)["error"] != "unavailable" {
		t.Errorf("a tool of a stopped app: %d %s", a.Status, a.Body)
	}
	command(1, "POST", "/v1/apps/wanted/start", "running")
	command(2, "DELETE", "/v1/apps/wanted", "")
	for _, s := range d.servers {
		if left := harness.Survivors(harness.ProcessesFor(filepath.Join(s.Home, "apps", "wanted")), propagationLimit); len(left) > 0 {
			t.Errorf("the uninstalled app left these processes behind:\n%v", left)
		}
	}
}

// testReadYourWrites sends each request immediately to a different server. It does not wait for the change to reach
// that server.
func testReadYourWrites(t *testing.T, d *cluster) {
	dir := harness.GoBundle(t, "swift", harness.Worker)
	for i := range 6 {
		at := func(n int) *harness.Server { return d.servers[(i+n)%len(d.servers)] }
		at(0).Install(t, map[string]any{"path": dir})
		if a := callWorker(t, at(1), "swift", "at once"); a.Status != 200 || d.serverOf(t, a.Body) != serverNames[(i+1)%3] {
			t.Errorf("a call: %d %s", a.Status, a.Body)
		}
		if a := at(2).Do(t, "POST", "/v1/apps/install", map[string]any{"path": dir}); a.Status != 409 {
			t.Errorf("a second install: %d %s", a.Status, a.Body)
		}
		if a := at(1).Do(t, "DELETE", "/v1/apps/swift", nil); a.Status != 200 {
			t.Errorf("the uninstall: %d %s", a.Status, a.Body)
		}
		if a := at(2).Do(t, "POST", "/v1/apps/swift/stop", nil); a.Status != 404 {
			t.Errorf("stopping an uninstalled app: %d %s", a.Status, a.Body)
		}
	}
}

// testWorkspaces creates and deletes a workspace through one server while the others have cached the memberships.
func testWorkspaces(t *testing.T, d *cluster) {
	workspaces := func(s *harness.Server) string { return s.Do(t, "GET", "/v1/workspace", nil).Body }
	for _, s := range d.servers {
		workspaces(s) // fills the cache
	}
	made := d.servers[0].Call(t, "system", "manage_workspaces", map[string]any{"action": "create", "name": "Harbour"})
	waitFor(t, "all servers see a workspace", func() bool {
		return !slices.ContainsFunc(d.servers, func(s *harness.Server) bool { return !strings.Contains(workspaces(s), `"Harbour"`) })
	})
	id := made.(map[string]any)["workspace"].(map[string]any)["id"]
	d.servers[1].Call(t, "system", "manage_workspaces", map[string]any{"action": "delete", "workspace": id})
	waitFor(t, "no server lists the deleted workspace", func() bool {
		return !slices.ContainsFunc(d.servers, func(s *harness.Server) bool { return strings.Contains(workspaces(s), `"Harbour"`) })
	})
}

func testSettings(t *testing.T, d *cluster) {
	everywhere := func(what, path, text string, there bool) {
		t.Helper()
		waitFor(t, what, func() bool {
			return !slices.ContainsFunc(d.servers, func(s *harness.Server) bool {
				return strings.Contains(s.Do(t, "GET", path, nil).Body, text) != there
			})
		})
	}
	d.servers[0].Call(t, "system", "manage_skills", map[string]any{"action": "put", "name": "knots", "body": "Tie them well."})
	everywhere("a skill", "/v1/skills", `"knots"`, true)
	d.servers[2].Call(t, "system", "manage_skills", map[string]any{"action": "delete", "name": "knots"})
	everywhere("a deleted skill", "/v1/skills", `"knots"`, false)
	d.servers[1].Call(t, "system", "set_model_config", map[string]any{"default": "anthropic:of-all"})
	everywhere("the default model", "/v1/workspace", `"anthropic:of-all"`, true)
}

func testServerReturn(t *testing.T, d *cluster) {
	if a := d.servers[0].Do(t, "POST", "/v1/apps/worker/stop", nil); a.Status != 200 { // while b is down
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	d.servers[0].Install(t, map[string]any{"path": harness.GoBundle(t, "meanwhile", harness.Plain)})
	b := d.servers[1]
	began := time.Now()
	passed := func(what string) { t.Logf("%s after %v", what, time.Since(began).Round(time.Millisecond)) }
	b.Start()
	passed("the server answers")
	b.WaitForStatus(t, "meanwhile", "running")
	b.WaitForStatus(t, "worker", "stopped")
	passed("the server has the changes")
	var health struct{ Bundles []map[string]string }
	if a := b.Do(t, "GET", "/v1/health", nil); json.Unmarshal([]byte(a.Body), &health) != nil || len(health.Bundles) != 2 {
		t.Errorf("health %s", a.Body)
	}
	if !testkit.Within(harness.Timeout, func() bool { // nginx tries the server again after 10 s
		a := d.proxy.Do(t, "POST", "/v1/tools/call", `{"server":"meanwhile","tool":"environment"}`)
		return a.Status == 200 && d.serverOf(t, a.Body) == "b"
	}) {
		t.Error("nginx sends nothing to the restarted server")
	}
	passed("nginx sends calls to the server")
}

// testBehindCaddy sends requests through Caddy, with the configuration in docs/proxies.md, and kills one of the
// servers.
func testBehindCaddy(t *testing.T, d *cluster) {
	listen := testenv.StartCaddy(t, func(listen string) string {
		return documentedSite(testenv.Documented(t, "proxies.md", "caddyfile", 1), "tools.example.com {", "http://"+listen+" {", d.servers)
	})
	if a := d.servers[0].Do(t, "POST", "/v1/apps/worker/start", nil); a.Status != 200 { // testServerReturn stopped it
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	for _, s := range d.servers {
		s.WaitForStatus(t, "worker", "running")
	}
	behind := &cluster{servers: d.servers, proxy: &harness.Server{T: t, URL: "http://" + listen}}
	testSessionRouting(t, behind)
	testStatelessSpread(t, behind)

	session := behind.proxy.SessionHeader(t)
	name, _, _ := strings.Cut(strings.TrimPrefix(session, "Mcp-Session-Id: "), "-")
	d.servers[slices.Index(serverNames, name)].Kill()
	var last harness.Response
	if !testkit.Within(harness.Timeout, func() bool { // a request whose connection breaks fails, and Caddy does not repeat it
		last = behind.proxy.Do(t, "POST", "/mcp", harness.Ping, harness.WorkspaceHeader, harness.AcceptHeader, session)
		return last.Status != http.StatusBadGateway
	}) || last.Status != http.StatusOK {
		t.Errorf("a session of the dead server: %d %s", last.Status, last.Body)
	}
	for range 6 { // including the requests that would go to the dead server
		if a := behind.proxy.Do(t, "GET", "/v1/apps", nil); a.Status != 200 {
			t.Errorf("a request while a server is dead: %d %s", a.Status, a.Body)
		}
	}
}
