package harness

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
)

// RunScript runs a script in clients/ with the packages of test/npm. It decodes the JSON that the script prints.
func RunScript[T any](t *testing.T, script string, args ...string) T {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", append([]string{filepath.Join(testenv.Root(t), "test", "e2e", "harness", "clients", script)}, args...)...)
	cmd.Env = append(os.Environ(), "NODE_MODULES="+filepath.Join(testenv.Node(t), "node_modules"))
	var output strings.Builder
	cmd.Stderr = &output
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", script, strings.Join(args, " "), err, out, output.String())
	}
	var result T
	if err := json.Unmarshal(out, &result); err != nil {
		t.Fatalf("%s %s printed %q: %v", script, strings.Join(args, " "), out, err)
	}
	return result
}

// ListedTools is the output of typescript.mjs for the commands stdio and tools.
type ListedTools struct{ Tools []string }

// CheckSecondClient runs version 2 of the official client with the app "everything" and one protocol revision.
func CheckSecondClient(t *testing.T, url, revision string) {
	t.Helper()
	seen := RunScript[struct {
		Server, Revision, Echo, Elicited string
		Tools, Progress, Questions       []string
		Structured                       map[string]any
		Failure                          bool
	}](t, "typescript2.mjs", url, Workspace, revision)

	if seen.Server != "ropewalk" || seen.Revision != revision || seen.Echo != "Echo: hello" || !seen.Failure {
		t.Errorf("%+v", seen)
	}
	if !slices.Contains(seen.Tools, "everything__echo") || !slices.Contains(seen.Tools, "system__list_apps") {
		t.Errorf("tools: %v", seen.Tools)
	}
	if seen.Structured["conditions"] != "Light rain / drizzle" {
		t.Errorf("the structured content is %v", seen.Structured)
	}
	want := []string{"1 of 4", "2 of 4", "3 of 4", "4 of 4", "Long running operation completed. Duration: 1 seconds, Steps: 4."}
	if !slices.Equal(seen.Progress, want) {
		t.Errorf("progress arrived as %q", seen.Progress)
	}
	if len(seen.Questions) != 1 || !strings.Contains(seen.Elicited, "the second client") {
		t.Errorf("the client was asked %q, and the tool returned %s", seen.Questions, seen.Elicited)
	}
}
