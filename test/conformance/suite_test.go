package conformance

import (
	"regexp"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

var (
	scenario = regexp.MustCompile(`(?m)^(\S) (\S+): (\d+) passed, (\d+) failed$`)
	unscored = regexp.MustCompile(`(?m)^  \S (\S+) \(\S+\)$`)
)

func TestEveryScenarioThatARevisionRequires(t *testing.T) {
	t.Parallel()
	for _, revision := range []struct {
		name      string
		scenarios int // the number of required scenarios, which the suite scores
	}{{"2025-11-25", 30}, {"2026-07-28", 37}} {
		t.Run(revision.name, func(t *testing.T) {
			t.Parallel()
			s := harness.Serve(t)
			install(t, s)
			suite := suiteCommand(t, "server", "--url", shim(t, s.URL), "--requirements", revision.name, "-o", t.TempDir())
			output, err := suite.CombinedOutput()
			if err != nil {
				t.Errorf("the suite: %v", err)
			}
			passed := passes(t, string(output))
			t.Logf("%s: %d of %d scored scenarios pass", revision.name, passed, revision.scenarios)
			if passed != revision.scenarios {
				t.Errorf("the suite's output:\n%s", output)
			}
		})
	}
}

// passes returns the number of scored scenarios that passed. It fails the test for each of the others.
func passes(t *testing.T, output string) (passed int) {
	_, summary, _ := strings.Cut(output, "=== SUMMARY ===")
	optional := map[string]bool{}
	for _, line := range unscored.FindAllStringSubmatch(summary, -1) {
		optional[line[1]] = true
	}
	for _, line := range scenario.FindAllStringSubmatch(summary, -1) {
		switch {
		case optional[line[2]]:
		case line[1] == "✓" && line[3] != "0" && line[4] == "0":
			passed++
		default:
			t.Errorf("%s", line[0])
		}
	}
	return passed
}
