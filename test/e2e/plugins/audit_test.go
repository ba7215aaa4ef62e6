package plugins

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/hashchain"
	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/plugins/audit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

func TestAKilledAuditPluginGetsEveryRecordOnceAndInOrder(t *testing.T) {
	provider := testenv.StartOpenIDProvider(t, "http://127.0.0.1:1/callback")
	path, sum := pluginBinary(t, "audit-file")
	first, second := filepath.Join(t.TempDir(), "first.log"), filepath.Join(t.TempDir(), "second.log")
	sink := func(name, file string) string {
		return fmt.Sprintf("    - {name: %s, adapter: third, path: %s, sha256: %s, file: %s}\n", name, path, sum, file)
	}
	settings := harness.OIDCAuth(provider.Issuer) + "limits: {calls: 0}\ntools: {approve: [sample__greet], approvalWaitSeconds: 0}\n" +
		"audit:\n  failClosed: true\n  arguments: true\n  sinks:\n" + sink("one", first)
	s := harness.Serve(t, harness.Flags("--sample"), harness.Config(settings))
	token := harness.MachineToken(t, provider.Issuer)
	bearer := "Authorization: Bearer " + token
	waitForStatusAs(t, s, "Bearer "+token, "sample", "running")

	do := func(method, path string, body any, want int) harness.Response {
		t.Helper()
		response := s.Do(t, method, path, body, bearer, "X-Workspace-Id: "+harness.Workspace)
		if response.Status != want {
			t.Errorf("%s %s: %d %s, want %d", method, path, response.Status, response.Body, want)
		}
		return response
	}
	s.Do(t, "GET", "/v1/auth/callback?state=none&code=none", nil)
	s.Do(t, "GET", "/v1/apps", nil, "Authorization: Bearer none")
	do("POST", "/v1/apps/sample/stop", nil, http.StatusOK)
	do("POST", "/v1/apps/sample/start", nil, http.StatusOK)
	waitForStatusAs(t, s, "Bearer "+token, "sample", "running")

	do("POST", "/v1/tools/call", map[string]any{"server": "sample", "tool": "greet", "arguments": map[string]any{"name": "Ann"}}, http.StatusConflict)
	var waiting struct{ Approvals []struct{ ID string } }
	if list := do("GET", "/v1/approvals", nil, http.StatusOK); json.Unmarshal([]byte(list.Body), &waiting) != nil || len(waiting.Approvals) != 1 {
		t.Fatalf("the waiting calls are %s", list.Body)
	}
	approval := "/v1/approvals/" + waiting.Approvals[0].ID
	do("POST", approval, map[string]any{"decision": "approve"}, http.StatusOK)

	l := harness.StartLoad(t, 40, s.OpenSession(t, "Authorization", "Bearer "+token), s.OpenSession(t, "Authorization", "Bearer "+token))
	l.WaitForCalls(t, 20)
	for range 4 {
		killAndWaitForReplacement(t, s, path)
		l.WaitForCalls(t, 20)
	}
	s.MustReload(t, settings+sink("two", second), "audit")
	testkit.Eventually(t, "the new sink has records of calls", func() bool {
		raw, err := os.ReadFile(second)
		return err == nil && bytes.Count(raw, []byte("sample__echo")) >= 60
	})
	l.Stop()
	for _, o := range l.Failures {
		t.Errorf("a call failed while the audit plugin was killed: %v", o.Err)
	}

	refusesWithoutItsSink(t, s, first, do)
	if status := s.Stop(); status != 0 {
		t.Errorf("the server exited with %d", status)
	}
	recorded := checkTrail(t, first)
	if recorded["tools.call sample__echo"] < l.Calls {
		t.Errorf("%d calls were answered, but only %d were recorded", l.Calls, recorded["tools.call sample__echo"])
	}
	for _, action := range []string{"GET /v1/auth/callback", "GET /v1/apps", "POST /v1/apps/sample/stop", "POST /v1/apps/sample/start", "POST " + approval, "tools.call sample__greet"} {
		if recorded[action] == 0 {
			t.Errorf("%s is not recorded", action)
		}
	}
	if n := checkTrail(t, second)["tools.call sample__echo"]; n < 20 {
		t.Errorf("the sink added by the reload has only %d calls", n)
	}
}

// refusesWithoutItsSink moves a sink's file away, checks that the server refuses changes and calls, and moves the file
// back.
func refusesWithoutItsSink(t *testing.T, s *harness.Server, file string, do func(method, path string, body any, want int) harness.Response) {
	t.Helper()
	call := map[string]any{"server": "sample", "tool": "echo", "arguments": map[string]any{"text": "x"}}
	if err := os.Rename(file, file+".away"); err != nil {
		t.Fatal(err)
	}
	do("POST", "/v1/tools/call", call, http.StatusServiceUnavailable)
	do("POST", "/v1/apps/sample/stop", nil, http.StatusServiceUnavailable)
	do("GET", "/v1/apps/sample", nil, http.StatusOK)
	if ready := s.Do(t, "GET", "/readyz", nil); !testkit.Within(harness.Timeout, func() bool {
		ready = s.Do(t, "GET", "/readyz", nil)
		return ready.Status == http.StatusServiceUnavailable && strings.Contains(ready.Body, `{"name":"audit","ok":false}`)
	}) {
		t.Errorf("without the sink, the server should not be ready: %d %s", ready.Status, ready.Body)
	}
	if err := os.Rename(file+".away", file); err != nil {
		t.Fatal(err)
	}
	if !testkit.Within(harness.Timeout, func() bool { return s.Do(t, "GET", "/readyz", nil).Status == http.StatusOK }) {
		t.Errorf("the server should be ready when the sink works again: %s", s.Do(t, "GET", "/readyz", nil).Body)
	}
	do("POST", "/v1/tools/call", call, http.StatusOK)
}

// checkTrail checks that the hash chain of a file is intact. It also checks that the records of each stream are in
// order, without gaps or duplicates. It returns the number of records by action, or for calls, by action and tool.
func checkTrail(t *testing.T, file string) map[string]int {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hashchain.Verify(bytes.NewReader(raw)); err != nil {
		t.Errorf("%s: %v", file, err)
	}
	counts, last := map[string]int{}, map[string]uint64{}
	lines := bufio.NewScanner(bytes.NewReader(raw))
	for lines.Scan() {
		var line struct{ Record audit.Entry }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		e := line.Record
		if e.Sequence != last[e.Stream]+1 {
			t.Errorf("%s: in the stream %s, record %d follows record %d", file, e.Stream, e.Sequence, last[e.Stream])
		}
		last[e.Stream] = e.Sequence
		if e.Action == "tools.call" {
			counts["tools.call "+e.Target]++
			continue
		}
		counts[e.Action]++
	}
	return counts
}
