package operations

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// make run is the first command in the README. make test includes this test.
func TestMakeRunAndThePrintedLinesWorkInACleanClone(t *testing.T) {
	t.Parallel()
	clone := filepath.Join(t.TempDir(), "ropewalk")
	if out, err := exec.CommandContext(t.Context(), "git", "clone", "-q", "--depth", "1", "file://"+testenv.Root(t), clone).CombinedOutput(); err != nil {
		t.Fatalf("git clone: %v\n%s", err, out)
	}
	// Compile everything first, because that takes a long time on a slow machine. make run then uses the compiled
	// packages.
	if out, err := exec.CommandContext(t.Context(), "make", "-C", clone, "build", "MAKEFLAGS=").CombinedOutput(); err != nil {
		t.Fatalf("make build: %v\n%s", err, out)
	}
	home := filepath.Join(t.TempDir(), "home")
	s := &harness.Server{T: t, Home: home, Log: &testkit.Log{}, Out: &testkit.Log{}, Done: make(chan struct{})}
	s.Cmd = exec.Command("make", "run", "PORT=0")
	s.Cmd.Dir, s.Cmd.Stdout, s.Cmd.Stderr = clone, s.Out, s.Log
	s.Cmd.Env = append(os.Environ(), "ROPEWALK_HOME="+home, "MAKEFLAGS=")
	if err := s.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.Done)
		_ = s.Cmd.Wait()
	}()
	t.Cleanup(func() {
		s.Stop()
		if left := harness.Survivors(harness.ProcessesFor(home), harness.Timeout); len(left) > 0 {
			t.Errorf("make has exited, but these processes are still running:\n%v", left)
		}
	})
	if !testkit.Within(4*harness.Timeout, func() bool { return strings.Contains(s.Out.String(), "mcpServers") || s.Exited() }) || s.Exited() {
		t.Fatalf("make run:\n%s%s", s.Out, s.Log)
	}

	printed := s.Out.String()
	line := regexp.MustCompile(`(?m)^ *(curl .*)$`).FindStringSubmatch(printed)
	if line == nil || !strings.Contains(printed, harness.Workspace) {
		t.Fatalf("make run printed:\n%s", printed)
	}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", line[1]).CombinedOutput()
	var response map[string]any
	if err != nil || json.Unmarshal(out, &response) != nil || response["result"] != "hello" || response["isError"] != false {
		t.Errorf("the printed command returned %q: %v", out, err)
	}

	var snippet struct {
		MCPServers map[string]struct {
			URL string
		}
	}
	if err := json.Unmarshal([]byte(regexp.MustCompile(`(?s)\{\n.*\n *\}\n`).FindString(printed)), &snippet); err != nil {
		t.Fatalf("%v in:\n%s", err, printed)
	}
	output := snippet.MCPServers["ropewalk"]
	seen := harness.RunScript[harness.ListedTools](t, "typescript.mjs", "tools", output.URL)
	for _, tool := range []string{"sample__echo", "sample__count", "sample__fail", "sample__greet"} {
		if !strings.Contains(strings.Join(seen.Tools, " "), tool) {
			t.Errorf("a client with the printed snippet sees %v", seen.Tools)
		}
	}
}

func TestThePrintedCommandWorksWithAKey(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.Flags("--sample"), harness.Env("SERVICE_API_KEY="+harness.APIKey))
	if !testkit.Within(harness.Timeout, func() bool { return strings.Contains(s.Out.String(), "mcpServers") }) {
		t.Fatal("the server printed nothing")
	}
	line := regexp.MustCompile(`(?m)^ *(curl .*)$`).FindStringSubmatch(s.Out.String())[1]
	run := exec.CommandContext(t.Context(), "sh", "-c", line)
	run.Env = append(os.Environ(), "SERVICE_API_KEY="+harness.APIKey)
	if out, err := run.CombinedOutput(); err != nil || !strings.Contains(string(out), `"result":"hello"`) {
		t.Errorf("the printed command returned %q: %v", out, err)
	}
	if strings.Contains(s.Out.String()+s.Log.String(), harness.APIKey) {
		t.Error("the server printed the key")
	}
}
