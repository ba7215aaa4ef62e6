package cluster

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/internal/chaos"
	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// previous builds the version before this one, whose commit is in testdata/previous, and returns the path of the
// executable. After each release, put the commit of the release into that file.
func previous(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "previous"))
	if err != nil {
		t.Fatal(err)
	}
	root, commit := testenv.Root(t), strings.TrimSpace(string(raw))
	if out, err := exec.CommandContext(t.Context(), "git", "-C", root, "cat-file", "-e", commit+"^{commit}").CombinedOutput(); err != nil {
		t.Skipf("cannot build the previous version, because this clone lacks its commit %s (run git fetch --unshallow): %v %s", commit, err, out)
	}
	dir := filepath.Join(root, ".cache", "previous-"+commit[:12])
	built := filepath.Join(dir, "ropewalk")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	defer testenv.Lock(t, dir+".lock")()
	if _, err := os.Stat(built); err == nil {
		return built
	}
	sources := t.TempDir()
	unpack := fmt.Sprintf("git -C '%s' archive %s | tar -x -C '%s'", root, commit, sources)
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", unpack).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// Rename the file last, so that an interrupted test leaves no partial executable.
	if err := testenv.Build(t.Context(), sources, built+".new", "./cmd/ropewalk"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(built+".new", built); err != nil {
		t.Fatal(err)
	}
	return built
}

func TestServersOfTwoVersionsServeOneDatabaseWhileEachIsRestarted(t *testing.T) {
	upgradeUnderLoad(t, time.Second)
}

// upgradeUnderLoad upgrades three servers one after another under load. It restarts some of them in between. No call
// may fail or be repeated. After each step, it waits at least for pause, and until every caller has made a successful
// call again.
func upgradeUnderLoad(t *testing.T, pause time.Duration) {
	old := previous(t)
	d := startRestartable(t, 4, func(s *harness.Server) { s.Program = old })
	a, b, c := d.servers[0], d.servers[1], d.servers[2]
	d.proxy = &harness.Server{T: t, URL: startBalancer(t, d.servers)}
	a.Install(t, map[string]any{"path": harness.GoBundle(t, "worker", harness.Worker)})
	for _, s := range d.servers {
		s.WaitForStatus(t, "worker", "running")
	}

	stop, end := context.WithCancel(t.Context())
	defer end()
	callers := &callers{url: d.proxy.URL, stop: stop}
	kinds := map[string]func(name string, i int){
		"person":    func(name string, _ int) { callers.person(t, name) },
		"client":    func(name string, i int) { callers.client(t, name, serverNames[i%3]+"-") },
		"stateless": func(name string, _ int) { callers.stateless(t, name) },
		"keys":      func(name string, _ int) { callers.keys(t, name) },
	}
	var calling sync.WaitGroup
	for kind, call := range kinds {
		for i := range 3 {
			calling.Go(func() { call(fmt.Sprint(kind, i, "-"), i) })
		}
	}
	step := func(what string, do func()) {
		t.Helper()
		began := time.Now()
		if do(); t.Failed() {
			t.FailNow()
		}
		done := time.Now()
		<-time.After(pause)
		if !testkit.Within(harness.Timeout, func() bool { return callers.allSince(done, kinds, d.servers) }) {
			t.Fatalf("%s: since this step, some callers or servers have had no successful call", what)
		}
		t.Logf("%s %s: %v, then load for %v", began.Format(time.StampMilli), what, done.Sub(began).Round(time.Millisecond), time.Since(done).Round(time.Millisecond))
	}
	restart := func(s *harness.Server, program string) func() {
		return func() {
			s.Stop()
			earlier := s.Log
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("log of %s before a restart:\n%s", s.Home, earlier)
				}
			})
			s.Program = program
			s.Start()
			s.WaitForStatus(t, "worker", "running")
		}
	}
	step("three old servers", func() {})
	step("the old a is restarted", restart(a, old))
	step("b is upgraded", restart(b, ""))
	step("an app asks on a server of each version, and the other version gets the answer", func() {
		b.Install(t, map[string]any{"path": harness.GoBundle(t, "asker", harness.AskingInSessions)})
		for _, s := range []*harness.Server{b, c} {
			s.WaitForStatus(t, "asker", "running")
		}
		answerAsker(t, c, "old", callAsker(t, b, "new", ""))
		answerAsker(t, b, "new", callAsker(t, c, "old", ""))
	})
	step("the new b is restarted", restart(b, ""))
	step("an old server does not start after the upgrade", func() {
		c.Stop()
		again := exec.CommandContext(t.Context(), old, append(slices.Clone(c.Args), "--home", c.Home)...)
		again.Env = c.Environ
		out, err := again.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "a newer ropewalk wrote it") {
			t.Errorf("%v: %s", err, out)
		}
		c.Program = ""
		c.Start()
		c.WaitForStatus(t, "worker", "running")
	})
	step("a is upgraded", restart(a, ""))
	step("the new c is restarted", restart(c, ""))
	end()
	calling.Wait()

	calls := callers.noneFailed(t, d.workDone("worker"))
	chaos.Record(t, chaos.Row{
		Number: "39", Done: fmt.Sprintf("%d calls, %v, during seven restarts of servers with two versions", len(callers.all), calls),
		Figure: map[bool]string{true: "some failed", false: "none failed"}[t.Failed()], Required: "none failed or repeated", OK: !t.Failed(),
	})
	if left := d.proxy.Do(t, "GET", "/v1/keys", nil); left.Body != `{"keys":[]}` {
		t.Errorf("revoked keys remain: %d %s", left.Status, left.Body)
	}
}

// startRestartable starts the three servers with a shutdown delay, so that each can be restarted without failed calls.
func startRestartable(t *testing.T, delaySeconds int, options ...harness.Option) *cluster {
	t.Helper()
	return startServers(t, append(options, func(s *harness.Server) {
		file := filepath.Join(s.Home, "ropewalk.yaml")
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		harness.WriteFile(t, file, fmt.Sprintf("%shttp: {shutdownDelaySeconds: %d}\n", raw, delaySeconds))
	})...)
}

// noneFailed fails the test for each call that failed or was not done exactly once. It returns the number of calls by
// kind.
func (c *callers) noneFailed(t *testing.T, done map[string]int) map[string]int {
	t.Helper()
	calls := map[string]int{}
	for _, attempt := range c.all {
		calls[strings.TrimRight(attempt.id, "-0123456789")]++
		switch times := done[attempt.id]; {
		case attempt.status >= 300 || attempt.status == 0:
			t.Errorf("%s, begun at %v: %d %s", attempt.id, attempt.begun.Format(time.StampMilli), attempt.status, attempt.body)
		case times != 1 && strings.Contains(attempt.body, "/apps/worker/"):
			t.Errorf("%s was answered, but was executed %d times", attempt.id, times)
		}
	}
	return calls
}

// Some versions of Caddy cannot repeat a POST whose connection failed. They then also treat the next server as broken.
func TestServersBehindCaddyAreRestartedWithoutAFailedCall(t *testing.T) {
	d := startRestartable(t, 5)
	listen := testenv.StartCaddy(t, func(listen string) string {
		return documentedSite(testenv.Documented(t, "proxies.md", "caddyfile", 1), "tools.example.com {", "http://"+listen+" {", d.servers)
	})
	d.servers[0].Install(t, map[string]any{"path": harness.GoBundle(t, "worker", harness.Worker)})
	for _, s := range d.servers {
		s.WaitForStatus(t, "worker", "running")
	}
	stop, end := context.WithCancel(t.Context())
	defer end()
	callers := &callers{url: "http://" + listen, stop: stop}
	var calling sync.WaitGroup
	for i := range 3 {
		calling.Go(func() { callers.person(t, fmt.Sprint("person", i, "-")) })
		calling.Go(func() { callers.client(t, fmt.Sprint("client", i, "-"), serverNames[i]+"-") })
	}
	for _, s := range d.servers {
		s.Stop()
		s.Start()
		s.WaitForStatus(t, "worker", "running")
	}
	end()
	calling.Wait()
	t.Logf("calls: %v", callers.noneFailed(t, d.workDone("worker")))
}

// startBalancer starts a load balancer that works as docs/replicas.md and docs/operations.md describe, and returns its
// address. It skips servers that are not ready. It sends the requests of a session to the server named in the session
// ID.
func startBalancer(t *testing.T, servers []*harness.Server) string {
	t.Helper()
	ready := make([]atomic.Bool, len(servers))
	var next atomic.Uint64
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var probing sync.WaitGroup
	to := make([]*url.URL, len(servers))
	for i, s := range servers {
		var err error
		if to[i], err = url.Parse(s.URL); err != nil {
			t.Fatal(err)
		}
		ready[i].Store(true)
		probing.Go(func() {
			for tick := time.NewTicker(20 * time.Millisecond); ctx.Err() == nil; <-tick.C {
				resp, err := http.Get(to[i].String() + "/readyz")
				if err == nil {
					_ = resp.Body.Close()
				}
				ready[i].Store(err == nil && resp.StatusCode == http.StatusOK)
			}
		})
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		name, _, _ := strings.Cut(r.In.Header.Get("Mcp-Session-Id"), "-")
		at := slices.Index(serverNames, name)
		for n := 0; n < len(servers) && (at < 0 || !ready[at].Load()); n++ {
			at = int(next.Add(1)) % len(servers)
		}
		r.SetURL(to[at])
	}})
	t.Cleanup(func() {
		proxy.Close()
		stop()
		probing.Wait()
	})
	return proxy.URL
}

// allSince reports whether, since the given moment, a caller of each kind made a successful call and the app on each
// server answered.
func (c *callers) allSince(moment time.Time, kinds map[string]func(string, int), servers []*harness.Server) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	missing, idle := maps.Clone(kinds), slices.Clone(servers)
	for _, a := range slices.Backward(c.all) {
		if a.begun.Before(moment) {
			break // earlier entries may have begun slightly later, which does not matter
		}
		if a.status/100 == 2 {
			delete(missing, strings.TrimRight(a.id, "-0123456789"))
			idle = slices.DeleteFunc(idle, func(s *harness.Server) bool { return strings.Contains(a.body, s.Home+"/") })
		}
	}
	return len(missing)+len(idle) == 0
}

// keys creates API keys and revokes them. The balancer may send each request to a different server.
func (c *callers) keys(t *testing.T, name string) {
	for i := 0; c.stop.Err() == nil; i++ {
		id := fmt.Sprintf("%s-%d", name, i)
		made := c.send(t, id, "/v1/keys", fmt.Sprintf(`{"name":%q,"role":"member"}`, id), "", harness.WorkspaceHeader)
		if made.status != http.StatusOK {
			continue
		}
		key, _ := harness.Response{Body: made.body}.Object(t)["id"].(string)
		req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodDelete, c.url+"/v1/keys/"+key, nil)
		if err != nil {
			t.Error(err)
			return
		}
		req.Header.Set("X-Workspace-Id", harness.Workspace)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Errorf("revoking a key: %v", err)
			continue
		}
		body, _ := io.ReadAll(resp.Body)
		if _ = resp.Body.Close(); resp.StatusCode != http.StatusOK {
			t.Errorf("revoking a key: %d %s", resp.StatusCode, body)
		}
	}
}

func TestAFileIsUpgradedAndRolledBackWithItsBackup(t *testing.T) {
	t.Parallel()
	old := previous(t)
	s := harness.Serve(t, func(s *harness.Server) { s.Program = old })
	run := func(program string, block int) {
		t.Helper()
		commands := strings.ReplaceAll(testenv.Documented(t, "upgrading.md", "sh", block), "ropewalk ", program+" ")
		cmd := exec.CommandContext(t.Context(), "sh", "-euc", commands)
		cmd.Dir, cmd.Env = filepath.Dir(s.Home), append(slices.Clone(s.Environ), "ROPEWALK_HOME="+s.Home)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", commands, err, out)
		}
	}
	restart := func(program string) {
		t.Helper()
		s.Program = program
		s.Start()
		s.WaitForStatus(t, "plain", "running")
	}
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "plain", harness.Plain)})
	made := s.Do(t, "POST", "/v1/keys", map[string]any{"name": "before", "role": "member"}, harness.WorkspaceHeader)
	key, _ := made.Object(t)["key"].(string)
	run(old, 0)

	s.Stop()
	restart("")
	if a := s.Do(t, "GET", "/v1/apps", nil, "Authorization: Bearer "+key); a.Status != http.StatusOK {
		t.Errorf("a key created before the upgrade: %d %s", a.Status, a.Body)
	}
	s.Do(t, "POST", "/v1/keys", map[string]any{"name": "after", "role": "member"}, harness.WorkspaceHeader)

	s.Stop()
	refused := exec.CommandContext(t.Context(), old, append(slices.Clone(s.Args), "--home", s.Home)...)
	refused.Env = s.Environ
	if out, err := refused.CombinedOutput(); err == nil || !strings.Contains(string(out), "a newer ropewalk wrote it") || !strings.Contains(string(out), "restore a backup") {
		t.Errorf("%v: %s", err, out)
	}
	run(old, 1)
	restart(old)
	if a := s.Do(t, "GET", "/v1/keys", nil); !strings.Contains(a.Body, `"before"`) || strings.Contains(a.Body, `"after"`) {
		t.Errorf("keys after the rollback: %s", a.Body)
	}
}
