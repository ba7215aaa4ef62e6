package mcp

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

func TestEachOfficialClientGetsItsOwnQuestions(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	s.Install(t, map[string]any{"path": harness.NodeBundle(t, harness.NodeManifest("everything", harness.Everything, "stdio"))})
	const sessions = 4
	seen := harness.RunScript[struct {
		Asked []struct{ Elicited, Sampled string }
	}](t, "elicitation.mjs", s.URL, harness.Workspace, fmt.Sprint(sessions))
	if len(seen.Asked) != sessions {
		t.Fatalf("%d sessions got a question", len(seen.Asked))
	}
	for n, output := range seen.Asked {
		if me := fmt.Sprintf("client %d", n); !strings.Contains(output.Elicited, me) || !strings.Contains(output.Sampled, me+" says") {
			t.Errorf("session %d: %+v", n, output)
		}
	}
}

func TestTheOfficialClientIsServedThroughMCP(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	s.Install(t, map[string]any{"path": harness.NodeBundle(t, harness.NodeManifest("everything", harness.Everything, "stdio"))})
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "grower", harness.Plain)})
	events := s.Listen(t)
	file := s.SharedFile("grower", "last")

	seen := harness.RunScript[struct {
		Server           string
		Tools, Progress  []string
		Echo, Cancelled  string
		Changed, Failure bool
		Mistaken         int
		Ping             map[string]any
		Unknown          int
	}](t, "typescript.mjs", "tour", s.URL, harness.Workspace, file)

	if !slices.IsSorted(serversOf(seen.Tools)) || !slices.Contains(seen.Tools, "everything__echo") || !slices.Contains(seen.Tools, "system__list_apps") {
		t.Errorf("tools: %v", seen.Tools)
	}
	if seen.Server != "ropewalk" || seen.Echo != "Echo: hello" || seen.Ping == nil || len(seen.Ping) != 0 || seen.Mistaken != 0 || !seen.Failure || seen.Unknown != -32602 {
		t.Errorf("%+v", seen)
	}
	want := []string{"1 of 4", "2 of 4", "3 of 4", "4 of 4", "Long running operation completed. Duration: 1 seconds, Steps: 4."}
	if !slices.Equal(seen.Progress, want) {
		t.Errorf("progress arrived as %q", seen.Progress)
	}
	if !seen.Changed {
		t.Error("the added tool is not listed")
	}
	if seen.Cancelled != "abandoned" || !testkit.Within(harness.Timeout, func() bool { _, err := os.Stat(file + ".cancelled"); return err == nil }) {
		t.Errorf("the cancelled call was %s, and the tool was not cancelled", seen.Cancelled)
	}
	// Of all these calls, only one came from an agent, succeeded, and was not declared read-only.
	if e := events.Next(t); !strings.HasPrefix(e, `data.changed {"server":"grower","timestamp":"`) || !strings.HasSuffix(e, `Z","tool":"grow"}`) {
		t.Errorf("event %s", e)
	}
}

func serversOf(names []string) []string {
	var servers []string
	for _, name := range names {
		server, _, _ := strings.Cut(name, "__")
		servers = append(servers, server)
	}
	return servers
}

// A single invalid definition makes the official client reject the whole list.
func TestTheOfficialClientListsAnAppWithTwentyInvalidTools(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	script, err := os.ReadFile("wrong.mjs")
	if err != nil {
		t.Fatal(err)
	}
	dir := harness.Bundle(t, map[string]any{"name": "@e2e/wrong", "server": map[string]any{
		"type": "node", "entry_point": "wrong.mjs", "mcp_config": map[string]any{"command": "node", "args": []string{"${__dirname}/wrong.mjs"}},
	}})
	harness.WriteFile(t, filepath.Join(dir, "wrong.mjs"), string(script))
	s.Install(t, map[string]any{"path": dir})

	var want []string
	for i := range 20 {
		if i != 5 && i != 6 { // the schemas of these two are not objects
			want = append(want, fmt.Sprintf("wrong__wrong%d", i))
		}
	}
	want = append([]string{"wrong__first"}, append(want, "wrong__last")...)
	listed := harness.RunScript[harness.ListedTools](t, "typescript.mjs", "tools", s.URL+"/mcp/"+harness.Workspace)
	tools := slices.DeleteFunc(listed.Tools, func(name string) bool { return !strings.HasPrefix(name, "wrong__") })
	if !slices.Equal(tools, want) {
		t.Errorf("the client lists %v", tools)
	}
	logs := s.Do(t, "GET", "/v1/apps/wrong/logs", "").Body
	for _, sentence := range []string{
		`left out the tool \"wrong5\": its inputSchema is a string, but must be an object`,
		`corrected the tool \"wrong12\": description is null, but must be a string`,
	} {
		if !strings.Contains(logs, sentence) {
			t.Errorf("the app's log does not contain %s:\n%s", sentence, logs)
		}
	}
	if a := s.Do(t, "POST", "/v1/tools/call", `{"server":"wrong","tool":"wrong2","arguments":{"x":1}}`); a.Status != 200 || !strings.Contains(a.Body, "called") {
		t.Errorf("the call: %d %s", a.Status, a.Body)
	}
}

// This tests version 2 of the official client, with and without a session. The app supports only sessions.
// Without a session, the app's question becomes a result, and the client sends its answer in another call.
func TestTheSecondOfficialClientIsServedThroughMCP(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	s.Install(t, map[string]any{"path": harness.NodeBundle(t, harness.NodeManifest("everything", harness.Everything, "stdio"))})
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) { harness.CheckSecondClient(t, s.URL, revision) })
	}
}
