package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
)

// The README promises two commands on a fresh machine. The second one is what runs this test.
func TestMakeRunFromACleanCloneAndThePrintedLinesWork(t *testing.T) {
	t.Parallel()
	clone := filepath.Join(t.TempDir(), "ropewalk")
	if out, err := exec.CommandContext(t.Context(), "git", "clone", "-q", "--depth", "1", "file://"+testenv.Root(t), clone).CombinedOutput(); err != nil {
		t.Fatalf("git clone: %v\n%s", err, out)
	}
	// Compiling everything takes as long as the machine needs. make run finds the packages compiled.
	if out, err := exec.CommandContext(t.Context(), "make", "-C", clone, "build", "MAKEFLAGS=").CombinedOutput(); err != nil {
		t.Fatalf("make build: %v\n%s", err, out)
	}
	home := filepath.Join(t.TempDir(), "home")
	s := &server{t: t, home: home, log: &transcript{}, out: &transcript{}, ended: make(chan struct{})}
	s.cmd = exec.Command("make", "run", "PORT=0")
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = clone, s.out, s.log
	s.cmd.Env = append(os.Environ(), "ROPEWALK_HOME="+home, "MAKEFLAGS=")
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.ended)
		_ = s.cmd.Wait()
	}()
	t.Cleanup(func() {
		s.terminate()
		if left := survivors(mentioning(home), patience); len(left) > 0 {
			t.Errorf("make has ended and these processes are left:\n%v", left)
		}
	})
	if !eventually(4*patience, func() bool { return strings.Contains(s.out.String(), "mcpServers") || s.hasEnded() }) || s.hasEnded() {
		t.Fatalf("make run:\n%s%s", s.out, s.log)
	}

	printed := s.out.String()
	line := regexp.MustCompile(`(?m)^ *(curl .*)$`).FindStringSubmatch(printed)
	if line == nil || !strings.Contains(printed, workspace) {
		t.Fatalf("make run printed:\n%s", printed)
	}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", line[1]).CombinedOutput()
	var answer map[string]any
	if err != nil || json.Unmarshal(out, &answer) != nil || answer["result"] != "hello" || answer["isError"] != false {
		t.Errorf("the printed line answers %q: %v", out, err)
	}

	var snippet struct {
		MCPServers map[string]struct {
			URL string
		}
	}
	if err := json.Unmarshal([]byte(regexp.MustCompile(`(?s)\{\n.*\n *\}\n`).FindString(printed)), &snippet); err != nil {
		t.Fatalf("%v in:\n%s", err, printed)
	}
	said := snippet.MCPServers["ropewalk"]
	base, inPath, _ := strings.Cut(said.URL, "/mcp/")
	seen := runScript[listed](t, "client.mjs", "tools", base, inPath)
	for _, tool := range []string{"sample__echo", "sample__count", "sample__fail", "sample__greet"} {
		if !strings.Contains(strings.Join(seen.Tools, " "), tool) {
			t.Errorf("a client with the printed snippet sees %v", seen.Tools)
		}
	}
}

func TestThePrintedLineWorksWithAKeyToo(t *testing.T) {
	t.Parallel()
	s := serve(t, flag("--sample"), env("SERVICE_API_KEY="+apiKey))
	if !eventually(patience, func() bool { return strings.Contains(s.out.String(), "mcpServers") }) {
		t.Fatal("nothing is printed")
	}
	line := regexp.MustCompile(`(?m)^ *(curl .*)$`).FindStringSubmatch(s.out.String())[1]
	run := exec.CommandContext(t.Context(), "sh", "-c", line)
	run.Env = append(os.Environ(), "SERVICE_API_KEY="+apiKey)
	if out, err := run.CombinedOutput(); err != nil || !strings.Contains(string(out), `"result":"hello"`) {
		t.Errorf("the printed line answers %q: %v", out, err)
	}
	if strings.Contains(s.out.String()+s.log.String(), apiKey) {
		t.Error("the key is printed")
	}
}
