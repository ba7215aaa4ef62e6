package conformance

import (
	"regexp"
	"testing"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// taskScenarios returns the scenarios of the suite for the extension io.modelcontextprotocol/tasks. The suite skips the
// check of tasks-status-notifications, which are optional.
func taskScenarios() []string {
	return []string{
		"tasks-lifecycle", "tasks-capability-negotiation", "tasks-wire-fields", "tasks-request-state-removal", "tasks-mrtr-input", "tasks-request-headers",
		"tasks-dispatch-and-envelope", "tasks-required-task-error", "tasks-mrtr-composition",
	}
}

// skillScenarios returns the scenarios for the extension io.modelcontextprotocol/skills. The suite skips the ones for
// resources/directory/read, which is optional.
func skillScenarios() []string {
	return []string{"sep-2640-skills-enumeration", "sep-2640-skills-manifest"}
}

func TestEveryScenarioForExtensions(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	s.Install(t, map[string]any{"path": harness.GoBundle(t, app, harness.Tasks)})
	url := shim(t, s.URL)
	for _, scenario := range append(taskScenarios(), skillScenarios()...) {
		t.Run(scenario, func(t *testing.T) {
			suite := suiteCommand(t, "server", "--url", url, "--scenario", scenario, "--spec-version", "2026-07-28", "--force", "-o", t.TempDir())
			output, err := suite.CombinedOutput()
			if err != nil || !regexp.MustCompile(`Passed: [1-9]`).Match(output) {
				t.Errorf("%v\n%s", err, output)
			}
			t.Log(string(output))
		})
	}
}
