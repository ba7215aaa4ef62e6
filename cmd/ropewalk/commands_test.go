package main_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core/process"
	"github.com/ropewalk/ropewalk/internal/testenv"
)

func TestKeysAreCreatedUsedAndDeletedFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	const owner = "the-key-of-the-owner-0123"
	s.environ = []string{"SERVICE_API_KEY=" + owner, "ROPEWALK_API_KEY=" + owner}
	url := s.up()
	made, _, status := s.split("", "ropewalk", "key", "create", "ci", "--role", "member", "--expires-in", "1h", "--json")
	key := regexp.MustCompile(`"key": "(rwk_\w+)"`).FindStringSubmatch(made)
	id := regexp.MustCompile(`"id": "(key_\w+)"`).FindStringSubmatch(made)
	if status != 0 || key == nil || id == nil {
		t.Fatalf("status %d: %s", status, made)
	}
	if listed, _, _ := s.split("", "ropewalk", "key", "list"); !strings.Contains(listed, id[1]) || strings.Contains(listed, key[1]) {
		t.Errorf("the list is %s", listed)
	}
	elsewhere := newScript(t) // a client that does not have the server's home
	elsewhere.environ = []string{"ROPEWALK_SERVER=" + url, "ROPEWALK_API_KEY=" + key[1]}
	elsewhere.run("ropewalk", "app", "list").exits(0, "sample")
	s.run("ropewalk", "key", "revoke", id[1]).exits(0)
	if listed, _, _ := s.split("", "ropewalk", "key", "list"); strings.Contains(listed, id[1]) {
		t.Errorf("after its removal the list is %s", listed)
	}
	elsewhere.run("ropewalk", "app", "list").exits(1)
}

func TestAppsAreImportedConfiguredAndReadFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.up()
	s.write("servers.json", `{"mcpServers":{"far":{"url":"http://127.0.0.1:1/mcp"}}}`)
	s.run("ropewalk", "app", "import", "servers.json", "--dry-run").exits(0, "planned", "far", "http://127.0.0.1:1/mcp")
	s.run("ropewalk", "app", "import", "servers.json").exits(1, "failed", "connection refused", "1 of 1 server cannot be installed")
	s.write("vscode.json", `{"inputs":[],"servers":{"far":{"type":"http","url":"http://127.0.0.1:1/mcp"}}}`)
	s.run("ropewalk", "app", "import", "vscode.json", "--dry-run", "--json").exits(0, `"name": "far"`, `"planned"`)
	s.write("comments.json", "{ // of an editor\n\"servers\": {\"far\": {\"url\": \"http://127.0.0.1:1/mcp\",}}, /* one */ }")
	s.run("ropewalk", "app", "import", "comments.json", "--dry-run").exits(0, "far", "planned")
	s.write("one.json", `{"servers":{"url":"http://127.0.0.1:1/mcp"}}`)
	s.run("ropewalk", "app", "import", "one.json", "--dry-run").exits(0, "servers", "planned")
	s.write("config.toml", "[mcp_servers.mine]\ncommand = \"sh\"\nargs = [\"-c\", \"exit 3\"]\nstartup_timeout_sec = 5\n[mcp_servers.mine.env]\nAPI_KEY = \"$MINE_KEY\"\n")
	s.run("ropewalk", "app", "import", "config.toml", "--dry-run").exits(1, "mine: the definition needs values that were not provided: MINE_KEY (for env.API_KEY)", "--set NAME=VALUE", "not imported: startup_timeout_sec")
	s.run("ropewalk", "app", "import", "config.toml", "--dry-run", "--set", "MINE_KEY=x").exits(0, "planned", "mine: arguments: -c exit 3", "mine: variables: API_KEY")
	s.write("again.json", `"sample": {"command": "sh", "args": ["-c", "exit 3"]}, "off": {"command": "x", "disabled": true}`)
	s.run("ropewalk", "app", "import", "again.json").exits(0, "exists", "--replace", "--skip-existing", "off", "disabled")
	s.run("ropewalk", "app", "import", "again.json", "--skip-existing").exits(0, "exists")
	for text, want := range map[string]string{"[]": "such as", "{": "not JSON", "{}": "it does not name a server", `{"mcpServers":[]}`: "such as"} {
		s.write("wrong.json", text)
		s.run("ropewalk", "app", "import", "wrong.json").exits(2, want)
	}
	s.run("ropewalk", "app", "list").exits(0, "sample")
	s.run("ropewalk", "app", "configure", "sample", "--env", "GREETING=hi").exits(0, "sample", "running")
	s.run("ropewalk", "app", "update", "sample").exits(0, "sample", "running")
	s.run("ropewalk", "app", "logs", "sample", "--tail", "5").exits(0)
	s.run("ropewalk", "app", "logs", "nothing").exits(1, "nothing")
}

func TestAChatPrintsTheAnswerAndTheToolCallsOfARun(t *testing.T) {
	t.Parallel()
	p := testenv.StartModelProvider(t)
	s := newScript(t)
	s.environ = []string{"NO_COLOR=1"}
	s.write(filepath.Join(s.home, "ropewalk.yaml"), "models:\n  default: openai:test-model\n  providers:\n    openai: {baseUrl: '"+p.URL+"/v1', apiKey: k}\n")
	s.up()
	p.Say(t,
		`{"match":{"userMessage":"hello","hasToolResult":false},"response":{"toolCalls":[{"id":"c1","name":"sample__echo","arguments":{"text":"across"}}]}}`,
		`{"match":{"userMessage":"again"},"response":{"content":"Once more."}}`,
		`{"match":{"userMessage":"fail"},"response":{"error":{"message":"no such deployment","type":"invalid_request_error"},"status":400}}`,
		`{"match":{},"response":{"content":"It said across."}}`)
	answer, notes, status := s.split("", "ropewalk", "chat", "hello")
	if status != 0 || !strings.Contains(answer, "It said across.") || !strings.Contains(notes, "sample__echo") {
		t.Fatalf("status %d: %q, %q", status, answer, notes)
	}
	id := regexp.MustCompile(`conv_\w+`).FindString(notes)
	if answer, _, status = s.split("again\n", "ropewalk", "chat", "--conversation", id, "-"); status != 0 || !strings.Contains(answer, "Once more.") {
		t.Errorf("conversation %s continues with status %d: %q", id, status, answer)
	}
	const failure = "the provider of openai:test-model did not accept the request. It says: no such deployment"
	s.run("ropewalk", "chat", "--conversation", id, "fail").exits(1, failure)
	s.run("ropewalk", "conversation", "show", id).exits(0, "fail", "✗ provider error: "+failure)
	s.run("ropewalk", "conversation", "show", id).exits(0, "hello", `→ sample__echo {"text":"across"} ✓ ok, `, "It said across.", "again", "Once more.")
	s.run("ropewalk", "conversation", "show", id, "--json").exits(0, `"toolCalls"`, `"output": "across"`)
}

func TestAChatAtATerminalExplainsHowToLeaveAndEndsOnExit(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.environ = []string{"TERM=xterm", "NO_COLOR=1"}
	s.up()
	const sent = "error: " // there is no model, so every message that is sent results in an error
	for input, sends := range map[string]bool{"/exit\nhello\n": false, " /exit \nhello\n": false, "hello\n/exit\n": true} {
		screen, _, status := s.split(input, "script", "-qec", filepath.Join(built, "ropewalk")+" chat", filepath.Join(s.dir, "typescript"))
		if status != 0 || !strings.Contains(screen, "Ctrl-D or /exit ends the chat") || strings.Contains(screen, sent) != sends {
			t.Errorf("%q: status %d: %q", input, status, screen)
		}
	}
}

func TestExitEndsAChatFromAPipeToo(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.up()
	if _, errs, status := s.split("/exit\nhello\n", "ropewalk", "chat"); status != 0 || errs != "" {
		t.Errorf("status %d: %s", status, errs)
	}
}

func TestASearchWithoutResultsRepeatsTheQueryAndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	bundles := t.TempDir()
	s.write(filepath.Join(s.home, "ropewalk.yaml"), "registries:\n- {name: ours, adapter: directory, dir: "+bundles+"}\n- {name: theirs, adapter: directory, dir: "+t.TempDir()+"}\n")
	s.up()
	s.run("ropewalk", "app", "search").exits(0, "There are no bundles in registries ours, theirs.")
	packed(t, filepath.Join(bundles, "notes.mcpb"), manifest("@acme/notes", "Keeps notes"))
	s.run("ropewalk", "app", "search").exits(0, "@acme/notes")
	const lists = "`ropewalk app search` without words lists every bundle."
	s.run("ropewalk", "app", "search", "weather").exits(0, `No bundle in registries ours, theirs matches "weather". `+lists)
	s.run("ropewalk", "app", "search", "--registry", "theirs", "notes").exits(0, `No bundle in registry theirs matches "notes". `+lists)
	for _, meant := range []string{"@acme/nots", "@acne/notes", "@somebody/notes", "@somebody/nots"} {
		s.run("ropewalk", "app", "search", meant).exits(0, "did you mean @acme/notes? "+lists)
		s.run("ropewalk", "app", "install", meant).exits(1, "did you mean @acme/notes?")
	}
}

func TestASearchSaysThatThereIsMoreOnlyWhenThereIs(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	bundles := t.TempDir()
	s.write(filepath.Join(s.home, "ropewalk.yaml"), "registries:\n- {name: ours, adapter: directory, dir: "+bundles+"}\n")
	for i := range 101 {
		packed(t, filepath.Join(bundles, fmt.Sprintf("b%d.mcpb", i)), manifest(fmt.Sprintf("@acme/b%d", i), "Counts"))
	}
	packed(t, filepath.Join(bundles, "notes.mcpb"), manifest("@acme/notes", "Keeps notes"))
	s.up()
	const more, most = "There are more bundles; --limit lists up to 100.", "A search returns at most 100 bundles, and there may be more"
	for line, c := range map[string]struct {
		rows int
		note string
	}{
		"notes --limit 1": {1, ""},
		"notes":           {1, ""},
		"acme --limit 1":  {1, more},
		"acme --limit 99": {99, more},
		"--limit 100":     {100, most},
	} {
		words := append([]string{"ropewalk", "app", "search"}, strings.Fields(line)...)
		table, notes, status := s.split("", words...)
		if rows := strings.Count(table, "@acme/"); status != 0 || rows != c.rows || c.note == "" && notes != "" || !strings.Contains(notes, c.note) {
			t.Errorf("%s: status %d, %d bundles, %q", line, status, rows, notes)
		}
		if found, _, _ := s.split("", append(words, "--json")...); strings.Count(found, `"name"`) != c.rows {
			t.Errorf("%s --json gives %s", line, found)
		}
	}
	s.run("ropewalk", "app", "search", "--limit", "0").exits(1, "limit")
	s.run("ropewalk", "app", "search", "--limit", "101").exits(1, "limit")
}

// manifest returns the manifest of a bundle that is only searched for, not started.
func manifest(name, description string) string {
	return `{"manifest_version":"0.3","name":"` + name + `","version":"1.0.0","description":"` + description + `","author":{"name":"a"},` +
		`"server":{"type":"binary","entry_point":"x","mcp_config":{"command":"x"}}}`
}

func TestANameIsLookedUpInTheRegistriesEvenIfAFolderHasIt(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	bundles := t.TempDir()
	s.write(filepath.Join(s.home, "ropewalk.yaml"), "registries:\n- {name: ours, adapter: directory, dir: "+bundles+"}\n"+
		"- {name: official, adapter: mcp-registry, url: \"https://127.0.0.1:1\", allowPrivateNetwork: true}\n")
	s.up()
	s.bundle(filepath.Join(bundles, "notes.mcpb"), "notes")
	for _, dir := range []string{"notes", "@test/notes", "plain", "folder/inside"} {
		if err := os.MkdirAll(filepath.Join(s.dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s.run("ropewalk", "app", "install", "plain").exits(1,
		"plain is looked up in the registries; write ./plain to install the file", "no configured registry (ours, official) has plain for",
		"ours: the folder has no bundle plain", `official: "plain" cannot be a name in this registry: names there have the form namespace/name`)
	s.run("ropewalk", "app", "install", "@test/notes").exits(1, "write ./@test/notes to install", "has @test/notes for")
	s.run("ropewalk", "app", "install", "notes").exits(0, "write ./notes to install", "notes 1.0.0 is running")
	for _, path := range []string{"./plain", "folder/inside", "plain/.."} {
		if refused := s.run("ropewalk", "app", "install", path).exits(1, "manifest.json"); strings.Contains(refused.text, "looked up") {
			t.Errorf("%s is not treated as a path: %s", path, refused.text)
		}
	}
}

// packed writes an .mcpb file that contains only a manifest.
func packed(t *testing.T, path, manifest string) {
	t.Helper()
	var file bytes.Buffer
	w := zip.NewWriter(&file)
	entry, err := w.Create("manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := entry.Write([]byte(manifest)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAChatRendersMarkdownOnATerminalUnlessNoColorIsSet(t *testing.T) {
	t.Parallel()
	p := testenv.StartModelProvider(t)
	s := newScript(t)
	s.write(filepath.Join(s.home, "ropewalk.yaml"), "models:\n  default: openai:test-model\n  providers:\n    openai: {baseUrl: '"+p.URL+"/v1', apiKey: k}\n")
	s.up()
	p.Say(t, `{"match":{},"response":{"content":"It is **important**. \u001b]0;title\u0007"}}`)
	chat := filepath.Join(built, "ropewalk") + " chat hello"
	s.environ = []string{"TERM=xterm", "NO_COLOR="}
	onTerminal, _, _ := s.split("", "script", "-qec", chat, filepath.Join(s.dir, "typescript"))
	if !strings.Contains(onTerminal, "It is \x1b[1mimportant\x1b[22m.") || strings.Contains(onTerminal, "\x1b]0;") {
		t.Errorf("a terminal gets %q", onTerminal)
	}
	if toFile, _, _ := s.split("", "sh", "-c", chat); !strings.Contains(toFile, "It is **important**. \x1b]0;title\a") {
		t.Errorf("a pipe gets %q", toFile)
	}
	s.environ = []string{"TERM=xterm", "NO_COLOR=1"}
	onTerminal, _, _ = s.split("", "script", "-qec", chat, filepath.Join(s.dir, "typescript"))
	if !strings.Contains(onTerminal, "It is **important**.") || strings.Contains(onTerminal, "\x1b") {
		t.Errorf("with NO_COLOR a terminal gets %q", onTerminal)
	}
}

// Each app has a shim process, so the shim must not initialize the server's packages (ARCHITECTURE.md, record 49).
func TestAShimDoesNotInitializeTheServer(t *testing.T) {
	t.Parallel()
	newScript(t)
	cmd := exec.Command(filepath.Join(built, "ropewalk"), process.ShimArg)
	cmd.Env = []string{"GODEBUG=inittrace=1"}
	trace, err := cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() != 125 {
		t.Fatalf("a shim without a program exited with %v:\n%s", err, trace)
	}
	sum := 0
	for _, line := range regexp.MustCompile(`(?m)^init (\S+) .* (\d+) bytes`).FindAllSubmatch(trace, -1) {
		n, _ := strconv.Atoi(string(line[2]))
		sum += n
		if strings.HasPrefix(string(line[1]), "github.com/ropewalk/ropewalk/core/server") || string(line[1]) == "github.com/spf13/cobra" {
			t.Errorf("a shim initializes %s", line[1])
		}
	}
	if sum == 0 || sum > 2<<20 {
		t.Errorf("the initialization of a shim allocates %d bytes:\n%s", sum, trace)
	}
}
