package e2e

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
)

// Three servers behind a proxy are one: what is done through any of them holds for all, and one that
// dies takes with it only what it was working on.
func TestThreeServersBehindNginxAreOne(t *testing.T) {
	d := deploy(t, env("ANTHROPIC_API_KEY=not-asked"))
	for _, part := range []struct {
		name string
		test func(*testing.T, *deployment)
	}{
		{"an app installed through one is listed and callable through all", d.installs},
		{"of installs of one name at once exactly one wins", d.installsAtOnce},
		{"events of one reach the streams of all", d.tells},
		{"a stop, a start and an uninstall count for all", d.commands},
		{"what was done through one counts for the next request to another", d.keepsUp},
		{"a change of members counts for all", d.people},
		{"a skill and a choice of models count for all", d.settings},
		{"a session goes to the server that has it", d.sessions},
		{"clients without sessions are spread over all", d.spreads},
		{"a client without a session is asked, and comes back to any", d.asks},
		{"the official client is served in both revisions", d.serves},
		{"one that is killed under load takes only its own calls along", d.loses},
		{"one that comes back catches up", d.returns},
	} {
		if !t.Run(part.name, func(t *testing.T) { part.test(t, d) }) {
			return
		}
	}
}

// worksOn calls the worker on one server.
func worksOn(t *testing.T, s *server, app, text string) answer {
	t.Helper()
	return s.do(t, "POST", "/v1/tools/call", map[string]any{"server": app, "tool": "work", "arguments": map[string]any{"text": text}})
}

func (*deployment) installs(t *testing.T, d *deployment) {
	dir := goBundle(t, "worker", worker)
	d.replicas[0].install(t, map[string]any{"path": dir})
	if err := os.RemoveAll(dir); err != nil { // it was on the disk of one machine, and is there no more
		t.Fatal(err)
	}
	soon(t, "the app is listed by all", func() bool {
		return !slices.ContainsFunc(d.replicas, func(s *server) bool { return s.apps(t)["worker"].Name == "" })
	})
	soon(t, "the app is called through all", func() bool { // where it starts yet, the call waits
		for i, s := range d.replicas {
			if a := worksOn(t, s, "worker", "first"); a.status != 200 {
				t.Fatalf("the first call on %s: %d %s", replicaNames[i], a.status, a.body)
			}
		}
		return true
	})
	answered := map[string]int{}
	for i := range 30 {
		a := worksOn(t, d.front, "worker", fmt.Sprint("through nginx ", i))
		if a.status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
		answered[d.whose(t, a.body)]++
	}
	t.Logf("30 calls through nginx were answered by %v", answered)
	if len(answered) != len(d.replicas) {
		t.Errorf("nginx spread 30 calls as %v", answered)
	}
	for i, s := range d.replicas {
		if got := d.whose(t, worksOn(t, s, "worker", "whose").body); got != replicaNames[i] {
			t.Errorf("a call to %s was answered by the process of %s", replicaNames[i], got)
		}
	}
}

func (*deployment) installsAtOnce(t *testing.T, d *deployment) {
	dir := goBundle(t, "wanted", plain)
	statuses := make([]int, 9)
	var asking sync.WaitGroup
	for i := range statuses {
		asking.Go(func() {
			a := d.replicas[i%len(d.replicas)].do(t, "POST", "/v1/apps/install", map[string]any{"path": dir})
			if statuses[i] = a.status; a.status == 409 && a.object(t)["error"] != "already_installed" || a.status != 200 && a.status != 409 {
				t.Errorf("%d %s", a.status, a.body)
			}
		})
	}
	asking.Wait()
	slices.Sort(statuses)
	if !slices.Equal(statuses, []int{200, 409, 409, 409, 409, 409, 409, 409, 409}) {
		t.Errorf("statuses %v", statuses)
	}
	for _, s := range d.replicas {
		s.reaches(t, "wanted", "running")
		if text := s.call(t, "wanted", "echo", map[string]any{"text": "hello"}); text != "hello" {
			t.Errorf("echo says %v", text)
		}
	}
}

func (*deployment) tells(t *testing.T, d *deployment) {
	readers := map[string]*listener{"through nginx": d.front.listen(t)}
	for i, s := range d.replicas {
		readers["of "+replicaNames[i]] = s.listen(t)
	}
	d.replicas[1].install(t, map[string]any{"path": goBundle(t, "news", plain)})
	heard := map[string][]string{}
	for i, s := range d.replicas {
		who := "of " + replicaNames[i]
		heard[who] = []string{readers[who].nextOutcome(t)}
		if s.apps(t)["news"].Name == "" {
			t.Errorf("the reader %s heard %s, and the app is not there", who, heard[who])
		}
	}
	soon(t, "the app runs on all", func() bool {
		return !slices.ContainsFunc(d.replicas, func(s *server) bool { return s.apps(t)["news"].Status != "running" })
	})
	killProcess(t, d.replicas[2].pid(t, "news")) // no event: a person's call
	if !eventually(patience, func() bool {
		a := d.replicas[2].do(t, "GET", "/v1/bundles/health", nil)
		return slices.ContainsFunc(list(t, a), func(b map[string]any) bool {
			return b["name"] == "news" && b["restartCount"] == 1.0 && b["state"] == "running"
		})
	}) {
		t.Fatal("the app did not come back")
	}
	session := d.replicas[2].open(t)
	if a := d.replicas[2].do(t, "POST", "/mcp", toolsCall("news__environment", "{}"), inWorkspace, takesBoth, session); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if a := d.replicas[2].do(t, "DELETE", "/v1/apps/news", nil); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	for who, reader := range readers {
		got := heard[who]
		for len(got) == 0 || !strings.HasPrefix(got[len(got)-1], "bundle.uninstalled ") {
			got = append(got, reader.nextOutcome(t))
		}
		count := map[string]int{}
		for _, e := range got {
			name, _, _ := strings.Cut(e, " ")
			count[name]++
		}
		for _, name := range []string{"bundle.installed", "bundle.crashed", "bundle.recovered", "data.changed", "bundle.uninstalled"} {
			if count[name] != 1 {
				t.Errorf("the reader %s got %s %d times: %q", who, name, count[name], got)
			}
		}
	}
}

func (*deployment) commands(t *testing.T, d *deployment) {
	command := func(i int, method, path, want string) {
		t.Helper()
		if a := d.replicas[i].do(t, method, path, nil); a.status != 200 {
			t.Fatalf("%s %s: %d %s", method, path, a.status, a.body)
		}
		soon(t, method+" "+path, func() bool {
			return !slices.ContainsFunc(d.replicas, func(s *server) bool { return s.apps(t)["wanted"].Status != want })
		})
	}
	command(0, "POST", "/v1/apps/wanted/stop", "stopped")
	if a := d.replicas[1].do(t, "POST", "/v1/tools/call", `{"server":"wanted","tool":"echo"}`); a.status != 503 || a.object(t)["error"] != "unavailable" {
		t.Errorf("a tool of a stopped app: %d %s", a.status, a.body)
	}
	command(1, "POST", "/v1/apps/wanted/start", "running")
	command(2, "DELETE", "/v1/apps/wanted", "")
	for _, s := range d.replicas {
		if left := survivors(mentioning(filepath.Join(s.home, "apps", "wanted")), within()); len(left) > 0 {
			t.Errorf("of an app that was uninstalled are left:\n%v", left)
		}
	}
}

// keepsUp: nobody waits here for the others to follow.
func (*deployment) keepsUp(t *testing.T, d *deployment) {
	dir := goBundle(t, "swift", worker)
	for i := range 6 {
		at := func(n int) *server { return d.replicas[(i+n)%len(d.replicas)] }
		at(0).install(t, map[string]any{"path": dir})
		if a := worksOn(t, at(1), "swift", "at once"); a.status != 200 || d.whose(t, a.body) != replicaNames[(i+1)%3] {
			t.Errorf("a call: %d %s", a.status, a.body)
		}
		if a := at(2).do(t, "POST", "/v1/apps/install", map[string]any{"path": dir}); a.status != 409 {
			t.Errorf("a second install: %d %s", a.status, a.body)
		}
		if a := at(1).do(t, "DELETE", "/v1/apps/swift", nil); a.status != 200 {
			t.Errorf("the uninstall: %d %s", a.status, a.body)
		}
		if a := at(2).do(t, "POST", "/v1/apps/swift/stop", nil); a.status != 404 {
			t.Errorf("a stop of what is gone: %d %s", a.status, a.body)
		}
	}
}

// people: the owner, whom everybody is here, makes a workspace through one server and finds it
// through the others, though each remembers who may be where.
func (*deployment) people(t *testing.T, d *deployment) {
	workspaces := func(s *server) string { return s.do(t, "GET", "/v1/workspace", nil).body }
	for _, s := range d.replicas {
		workspaces(s) // now it is remembered
	}
	made := d.replicas[0].call(t, "system", "manage_workspaces", map[string]any{"action": "create", "name": "Harbour"})
	soon(t, "a workspace is there for all", func() bool {
		return !slices.ContainsFunc(d.replicas, func(s *server) bool { return !strings.Contains(workspaces(s), `"Harbour"`) })
	})
	id := made.(map[string]any)["workspace"].(map[string]any)["id"]
	d.replicas[1].call(t, "system", "manage_workspaces", map[string]any{"action": "delete", "workspace": id})
	soon(t, "a workspace is gone for all", func() bool {
		return !slices.ContainsFunc(d.replicas, func(s *server) bool { return strings.Contains(workspaces(s), `"Harbour"`) })
	})
}

func (*deployment) settings(t *testing.T, d *deployment) {
	everywhere := func(what, path, text string, there bool) {
		t.Helper()
		soon(t, what, func() bool {
			return !slices.ContainsFunc(d.replicas, func(s *server) bool {
				return strings.Contains(s.do(t, "GET", path, nil).body, text) != there
			})
		})
	}
	d.replicas[0].call(t, "system", "manage_skills", map[string]any{"action": "put", "name": "knots", "body": "Tie them well."})
	everywhere("a skill", "/v1/skills", `"knots"`, true)
	d.replicas[2].call(t, "system", "manage_skills", map[string]any{"action": "delete", "name": "knots"})
	everywhere("a skill that was deleted", "/v1/skills", `"knots"`, false)
	d.replicas[1].call(t, "system", "set_model_config", map[string]any{"default": "anthropic:of-all"})
	everywhere("a choice of models", "/v1/workspace", `"anthropic:of-all"`, true)
}

// toolsCall is a call in a session.
func toolsCall(name, arguments string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","arguments":` + arguments + `}}`
}

// statelessCall is a call of MCP 2026-07-28, which needs no session, and its headers.
func statelessCall(name, arguments string) (body string, headers []string) {
	body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","arguments":` + arguments +
		`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	return body, []string{inWorkspace, takesBoth, "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: " + name}
}

func (*deployment) sessions(t *testing.T, d *deployment) {
	of := map[string]int{}
	for range 12 {
		session := d.front.open(t)
		name, _, _ := strings.Cut(strings.TrimPrefix(session, "Mcp-Session-Id: "), "-")
		of[name]++
		for range 5 {
			a := d.front.do(t, "POST", "/mcp", toolsCall("worker__work", `{"text":"in a session"}`), inWorkspace, takesBoth, session)
			if a.status != 200 {
				t.Fatalf("%d %s", a.status, a.body)
			}
			if got := d.whose(t, a.body); got != name {
				t.Fatalf("a call in the session %s was answered by %s", session, got)
			}
		}
		if a := d.front.do(t, "DELETE", "/mcp", nil, inWorkspace, session); a.status != 200 {
			t.Errorf("the end of a session: %d %s", a.status, a.body)
		}
	}
	t.Logf("12 sessions were opened on %v", of)
	if len(of) != len(d.replicas) {
		t.Errorf("sessions were opened on %v", of)
	}
}

func (*deployment) spreads(t *testing.T, d *deployment) {
	of := map[string]int{}
	body, headers := statelessCall("worker__work", `{"text":"without a session"}`)
	for range 30 {
		a := d.front.do(t, "POST", "/mcp", body, headers...)
		if a.status != http.StatusOK {
			t.Fatalf("%d %s", a.status, a.body)
		}
		of[d.whose(t, a.body)]++
	}
	t.Logf("30 calls without sessions were answered by %v", of)
	for _, name := range replicaNames {
		if of[name] < 5 {
			t.Errorf("30 calls without sessions were answered by %v", of)
		}
	}
}

// asks: the app, of the older revisions, waits for the answer in a process of one server; the answer
// comes to another.
func (*deployment) asks(t *testing.T, d *deployment) {
	d.replicas[2].install(t, map[string]any{"path": goBundle(t, "elder", elder)})
	for _, s := range d.replicas {
		s.reaches(t, "elder", "running")
	}
	call := func(id, more string) map[string]any {
		t.Helper()
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"elder__ask","arguments":{"text":"who?"}` + more +
			`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`
		_, headers := statelessCall("elder__ask", "")
		a := d.front.do(t, "POST", "/mcp", body, append(headers, "X-Request-Id: "+id)...)
		result, ok := a.object(t)["result"].(map[string]any)
		if a.status != 200 || !ok {
			t.Fatalf("%s: %d %s", id, a.status, a.body)
		}
		return result
	}
	for i := range 6 {
		asked := call(fmt.Sprint("ask-", i), "")
		questions, _ := asked["inputRequests"].(map[string]any)
		if len(questions) != 1 {
			t.Fatalf("the app did not ask: %s", toText(t, asked))
		}
		for name := range questions {
			said := call(fmt.Sprint("answer-", i), fmt.Sprintf(`,"requestState":%q,"inputResponses":{%q:{"action":"accept","content":{"name":"Ada %d"}}}`, asked["requestState"], name, i))
			if text := toText(t, said["content"]); !strings.Contains(text, fmt.Sprint("Ada ", i)) {
				t.Errorf("the app heard %s", text)
			}
		}
	}
	to, elsewhere := map[string]string{}, 0
	for _, f := range d.nginx.Forwarded(t) {
		to[f.ID] = f.Upstream
	}
	for i := range 6 {
		if to[fmt.Sprint("ask-", i)] != to[fmt.Sprint("answer-", i)] {
			elsewhere++
		}
	}
	t.Logf("of 6 answers %d came to another server than the one that asked", elsewhere)
	if elsewhere == 0 {
		t.Error("every answer came to the server that asked: that shows nothing")
	}
	if a := d.front.do(t, "DELETE", "/v1/apps/elder", nil); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func (*deployment) serves(t *testing.T, d *deployment) {
	d.replicas[0].install(t, map[string]any{"path": packed(t, everything, nodeManifest("everything", everything, "stdio"))})
	installed := time.Now()
	for _, s := range d.replicas {
		s.reaches(t, "everything", "running")
	}
	t.Logf("a published app with all that it needs ran on all after %v", time.Since(installed).Round(time.Millisecond))
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) { secondClient(t, d.front.url, revision) })
	}
	if a := d.front.do(t, "DELETE", "/v1/apps/everything", nil); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func (*deployment) returns(t *testing.T, d *deployment) {
	if a := d.replicas[0].do(t, "POST", "/v1/apps/worker/stop", nil); a.status != 200 { // while b is away
		t.Fatalf("%d %s", a.status, a.body)
	}
	d.replicas[0].install(t, map[string]any{"path": goBundle(t, "meanwhile", plain)})
	b := d.replicas[1]
	port := b.url[strings.LastIndexByte(b.url, ':')+1:]
	b.args[slices.Index(b.args, "--port")+1] = port // where nginx expects it
	began := time.Now()
	passed := func(what string) { t.Logf("%s after %v", what, time.Since(began).Round(time.Millisecond)) }
	b.start()
	passed("it answers")
	b.reaches(t, "meanwhile", "running")
	b.reaches(t, "worker", "stopped")
	passed("it has what was changed")
	var health struct{ Bundles []map[string]string }
	if a := b.do(t, "GET", "/v1/health", nil); json.Unmarshal([]byte(a.body), &health) != nil || len(health.Bundles) != 2 {
		t.Errorf("health %s", a.body)
	}
	if !eventually(patience, func() bool { // nginx tries it again after 10 s
		a := d.front.do(t, "POST", "/v1/tools/call", `{"server":"meanwhile","tool":"environment"}`)
		return a.status == 200 && d.whose(t, a.body) == "b"
	}) {
		t.Error("nginx sends nothing to the server that came back")
	}
	passed("nginx sends it calls")
}
