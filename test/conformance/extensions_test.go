package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// extensionScenarios maps prefixes of the suite's scenarios for servers to the number of scenarios that the suite has
// with each prefix. The extensions are tasks (SEP-2663) and skills (SEP-2640).
func extensionScenarios() map[string]int { return map[string]int{"tasks-": 10, "sep-2640-": 3} }

// skipped returns the scenarios that the suite skips completely or in part, with the reasons.
func skipped() map[string]string {
	return map[string]string{
		"tasks-status-notifications": "the suite does not check them yet, but the end-to-end tests do",
		"sep-2640-skills-directory":  "resources/directory/read is optional, and the server does not declare it",
	}
}

func TestEveryExtensionScenario(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	s.Install(t, map[string]any{"path": harness.GoBundle(t, app, harness.Tasks)})
	url, all := shim(t, s.URL), listed(t, "--server")
	for prefix, want := range extensionScenarios() {
		found := 0
		for scenario := range all {
			if strings.HasPrefix(scenario, prefix) {
				found++
				t.Run(scenario, func(t *testing.T) { runExtensionScenario(t, url, scenario) })
			}
		}
		if found != want {
			t.Errorf("got %d scenarios %s*, want %d", found, prefix, want)
		}
	}
}

func runExtensionScenario(t *testing.T, url, scenario string) {
	t.Helper()
	suite := suiteCommand(t, "server", "--url", url, "--scenario", scenario, "--spec-version", "2026-07-28", "--force", "--timeout", "90000", "-o", t.TempDir())
	output, err := suite.CombinedOutput()
	said := string(output)
	if skips := strings.Contains(said, "SKIPPED"); err != nil || skips != (skipped()[scenario] != "") || !skips && strings.Contains(said, "Passed: 0/") {
		t.Errorf("%v", err)
	}
	t.Log(said)
}

// taskCall is a tool call as the official client for tasks saw it.
type taskCall struct {
	Kind, Status, Text, Error string
	IsError                   bool
}

func TestTheOfficialClientFollowsTasksAcrossACrash(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	_, url := harness.StartTaskApp(t)
	s.Install(t, map[string]any{"url": url, "serverName": app})
	var saw struct {
		Greet, Slow, Wait, Failing, Broken, Confirmed, Two, Greeted, Resumed taskCall
		Cancelled, Unknown                                                   string
		Asked                                                                []string
		Reference                                                            json.RawMessage
	}
	run := func(args ...string) {
		t.Helper()
		client := nodeCommand(t, "tasks.mjs", append([]string{modules(t), s.URL + "/mcp", app}, args...)...)
		client.Stderr = os.Stderr
		output, err := client.Output()
		if err = errors.Join(err, json.Unmarshal(output, &saw)); err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
	}
	run()
	s.Kill()
	s.Start()
	run("resume", string(saw.Reference))
	done := func(text string) taskCall { return taskCall{Kind: "task", Status: "completed", Text: text} }
	for what, pair := range map[string][2]taskCall{
		"a quick call":                       {saw.Greet, {Kind: "immediate", Status: "completed", Text: "Hello, Ada!"}},
		"a task of the app":                  {saw.Slow, done("computed soon")},
		"a slow call":                        {saw.Wait, done("waited")},
		"a tool error":                       {saw.Failing, {Kind: "task", Status: "completed", Text: "done", IsError: true}},
		"a failed task":                      {saw.Broken, {Kind: "task", Status: "failed", Error: "the job broke the protocol"}},
		"a task with a question":             {saw.Confirmed, done("done")},
		"a task with two questions":          {saw.Two, done("done")},
		"a question before the task":         {saw.Greeted, done("Hello, Ada")},
		"a task whose server crashed":        {saw.Resumed, done("computed later")},
		"a cancelled task: " + saw.Cancelled: {{Status: saw.Cancelled}, {Status: "cancelled"}},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %+v, want %+v", what, pair[0], pair[1])
		}
	}
	if asked := fmt.Sprint(saw.Asked); asked != "[Who are you? confirm first second]" || saw.Unknown != `there is no task "task_0"` {
		t.Errorf("asked: %s; an unknown task: %s", asked, saw.Unknown)
	}
}

func TestTheInspectorVerifiesTheSkillsOfTheWorkspaceAndOfApps(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	s.Install(t, map[string]any{"path": harness.GoBundle(t, app, harness.Tasks)})
	put := func(path, content string) {
		harness.WriteFile(t, filepath.Join(s.Home, "skills", filepath.FromSlash(path)), content)
	}
	put("refunds/SKILL.md", "---\r\nname: refunds\r\ndescription: Pays back\r\nsince: 2026-1-2\r\nat: 2026-01-02 03:04:05\r\nrates: {1: 1.50, 2: [yes, ~]}\r\n---\r\nRead a b.md.\r\n")
	put("refunds/references/a b%#?.md", "<€>")
	put("refunds/logo.bin", "\xff\x00")
	put("refunds/nested/SKILL.md", "---\nname: nested\ndescription: d\n---\nx")
	put("daily.md", "---\nname: daily\ndescription: >\n  Reports\n  of the day\n---\nReport.")
	for i, front := range []string{"name: 123\ndescription: d", "name: a--b\ndescription: d", "name: number\ndescription: 5", "name: true\ndescription: d"} {
		put(fmt.Sprintf("invalid-%d.md", i), "---\n"+front+"\n---\nx")
	}
	launcher := filepath.Join(modules(t), "@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js")
	for _, era := range []string{"modern", "legacy"} {
		inspector := nodeCommand(t, launcher, "--cli", s.URL+"/mcp", "--transport", "http", "--header", harness.WorkspaceHeader, "--protocol-era", era,
			"--method", "skills/list", "--verify", "--require-digests")
		inspector.Env = append(os.Environ(), "HOME="+t.TempDir())
		output, err := inspector.CombinedOutput()
		if said := string(output); err != nil || strings.Count(said, `"outcome":"verified"`) != 3 || !strings.Contains(said, "skill://everything/acme/pdf-filing/SKILL.md") {
			t.Errorf("%s: %v\n%s", era, err, said)
		}
	}
}
