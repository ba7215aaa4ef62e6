package main_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/ropewalk/ropewalk/core/control"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

var listening = regexp.MustCompile(`server listening.*url=(http://\S+)`)

// up starts a server with the sample app on a free port, and waits until the app is running.
func (s *script) up(flags ...string) (url string) {
	s.t.Helper()
	cmd := s.command("ropewalk", append([]string{"up", "--port", "0"}, flags...)...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	var hints testkit.Log
	cmd.Stdout = &hints
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	found := make(chan string, 1)
	go func() {
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if m := listening.FindStringSubmatch(lines.Text()); m != nil {
				found <- m[1]
			}
		}
		close(found)
	}()
	url, _ = testkit.Receive(s.t, "the server listens", found)
	testkit.Eventually(s.t, "the hints are printed", func() bool { return hints.Contains("mcpServers") })
	if exe := filepath.Join(built, "ropewalk"); !hints.Contains("  " + exe + " tool call --home " + s.home + " sample__echo --text hello\n") {
		s.t.Errorf("the hints do not use this program and this home: %s", hints.String())
	}
	if !hints.Contains(url + "/v1/tools/call") {
		s.t.Errorf("the hints do not name the address: %s", hints.String())
	}
	if address, _, _ := s.split("", "ropewalk", "client-config", "claude-code"); !hints.Contains("\""+url+"/mcp/me\"") || !strings.Contains(address, " "+url+"/mcp/me") {
		s.t.Errorf("the hints and client-config name different addresses: %s and %s", hints.String(), address)
	}
	return url
}

// split runs a command and returns standard output and standard error separately.
func (s *script) split(stdin string, line ...string) (stdout, stderr string, status int) {
	s.t.Helper()
	var out, errs bytes.Buffer
	cmd := s.command(line[0], line[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	if err := cmd.Run(); cmd.ProcessState == nil {
		s.t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func TestAServerIsManagedFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.environ = []string{"ROPEWALK_CONTEXTS=" + filepath.Join(s.dir, "contexts.yaml"), "NO_COLOR=1"}
	url := s.up()
	const nothing = "\x00" // stands for empty standard output
	for _, c := range []struct {
		line, stdin    string
		status         int
		stdout, stderr string
	}{
		{"status", "", 0, "Apps       1, with 4 tools\n", ""},
		{"completion tcsh", "", 2, "", `unknown command "tcsh" for "ropewalk completion"`},
		{"completion bash", "", 0, "bash completion", ""},
		{"log level debug", "", 2, "", `"debug" must be COMPONENT=LEVEL, such as apps=debug`},
		{"serve --port abc", "", 2, "", "--port: must be a whole number, not \"abc\"; see"},
		{"key create x --expires-in 1d", "", 2, "", "--expires-in: must be a duration, such as 30s or 12h, not \"1d\""},
		{"status --json", "", 0, `"workspace"`, ""},
		{"app list", "", 0, "sample", ""},
		{"app list --json", "", 0, `"apps"`, ""},
		{"app stop sample", "", 0, "sample is stopped", ""},
		{"app start sample", "", 0, "sample is running", ""},
		{"app uninstall nothing", "", 1, "", "`ropewalk app list` shows what is installed"},
		{"app show sampel", "", 1, "", "; did you mean sample?"},
		{"app logs sampel", "", 1, "", "; did you mean sample?"},
		{"app logs -f sampel", "", 1, "", "; did you mean sample?"},
		{"app stop sampel", "", 1, "", "; did you mean sample?"},
		{"app update sampel", "", 1, "", "; did you mean sample?"},
		{"app uninstall sampel", "", 1, "", "; did you mean sample?"},
		{"app logs sample", "", 0, nothing, "sample has written nothing to standard error"},
		{"app show sample", "", 0, "\nsource        the path ", ""},
		{"app update sample", "", 0, " was reinstalled at the same version; it is running", ""},
		{"app remove nothing", "", 1, "", "nothing"},
		{"app uninstall --help", "", 0, "uninstall, remove", ""},
		{"app install ./missing.mcpb", "", 1, "", "./missing.mcpb does not exist: give the path of"},
		{"app install ./missing", "", 1, "", "./missing does not exist: give the path of"},
		{"app install a b", "", 2, "", "one app at a time"},
		{"app install", "", 2, "", "exactly one source"},
		{"tool list", "", 0, "sample__echo", ""},
		{"tool show sample__echo", "", 0, "--text", ""},
		{"tool call sample__echo --text hello", "", 0, "hello", ""},
		{"tool call echo --text=hello", "", 0, "hello", ""},
		{"tool call sample__echo -", `{"text":"from stdin"}`, 0, "from stdin", ""},
		{"tool call sample__echo", `{"text":"from stdin"}`, 2, "", "`ropewalk tool call sample__echo -` takes the arguments from it"},
		{"tool call sample__echo --text hello --json", "", 0, `"content"`, ""},
		{"tool call sample__echo --colour red", "", 2, "", `no parameter "colour"`},
		{"tool call nothing", "", 1, "", "ropewalk tool list"},
		{"tool call sample__ech", "", 1, "", "did you mean sample__echo?"},
		{"tool show ehco", "", 1, "", "did you mean sample__echo?"},
		{"tool call sample__echo", "", 2, "", "\n  missing property 'text'\n`ropewalk tool show sample__echo`"},
		{"tool call sample__echo hello", "", 2, "", "ropewalk tool show sample__echo"},
		{"app stop sample", "", 0, "sample is stopped", ""},
		{"tool call sample__echo --text x", "", 1, "", "`ropewalk app start sample` starts it"},
		{"app start sample", "", 0, "sample is running", ""},
		{"app search files", "", 0, nothing, "No registry is configured: add one to `registries`"},
		{"app search --help", "", 0, "TRUST is the score, 0 to 100", ""},
		{"events --help", "", 0, "bundle.install_failed  an app could not be installed", ""},
		{"events --only [", "", 2, "", "--only [ is not a pattern"},
		{"events --only bundle.ded --server http://127.0.0.1:1", "", 1, "", "--only bundle.ded matches no known event"},
		{"plugin list", "", 0, "memory   -     dev      in-process", ""},
		{"plugin info directory", "", 0, "path         built in", ""},
		{"plugin info directory", "", 0, "\nversion      dev\n", ""},
		{"plugin info registry-directory", "", 0, "kind         registry\nname         directory", ""},
		{"plugin info directory --kind auth", "", 1, "", `no plugin is named "directory"`},
		{"plugin info", "", 2, "", "missing PATH or NAME; usage: ropewalk plugin info"},
		{"plugin info auth oidc", "", 2, "", "unexpected argument \"oidc\""},
		{"plugin info " + t.TempDir(), "", 1, "", "is a directory; specify the executable in it"},
		{"plugin verify", "", 0, nothing, "There are no plugins in "},
		{"audit verify", "", 2, "", "the configuration has no audit.file; specify the FILE"},
		{"app import", "", 2, "", "the input is empty; provide a client's configuration file"},
		{"app install ./missing --set token=x", "", 1, "", "./missing does not exist"},
		{"plugin info direktory", "", 1, "", "did you mean directory?"},
		{"client-config", "", 2, "", "missing CLIENT, one of chatgpt, claude-code"},
		{"app stop", "", 2, "", "missing NAME; usage: ropewalk app stop NAME"},
		{"status now", "", 2, "", `unexpected argument "now"`},
		{"key list", "", 0, nothing, "There are no API keys"},
		{"key create laptop", "", 0, "rwk_", "It will not be shown again"},
		{"key create laptop --json", "", 0, `"key": "rwk_`, ""},
		{"chat hello", "", 1, "", "models.default"},
		{"chat --conversation nonsense", "", 1, "", `you have no conversation "nonsense" in this workspace`},
		{"chat --conversation nonsense hello", "", 1, "", `you have no conversation "nonsense" in this workspace`},
		{"chat --conversation conv_0123456789abcdef hello", "", 1, "", `you have no conversation "conv_0123456789abcdef" in this workspace`},
		{"chat --conversation conv_0123456789abcdef --workspace nonsense hello", "", 1, "", `there is no workspace "nonsense"`},
		{"app list --workspace ws_-", "", 1, "", "must have the form ws_<alphanumeric>"},
		{"key revoke laptop", "", 2, "", `"laptop" is the name of 2 keys; specify one by its id: key_`},
		{"key create once", "", 0, "rwk_", ""},
		{"key revoke once", "", 0, nothing, "Key once has been revoked."},
		{"conversation list --search x", "", 0, nothing, "None of your conversations contains these words."},
		{"conversation show nonsense", "", 1, "", `you have no conversation "nonsense" in this workspace`},
		{"key revoke nonsense", "", 1, "", `there is no key "nonsense"; ` + "`ropewalk key list` shows them"},
		{"usage", "", 0, "total", ""},
		{"usage --by nothing", "", 2, "", "--by must be one of day, model"},
		{"debug profile hat", "", 2, "", "goroutine"},
		{"workspace list", "", 0, "ws_", ""},
		{"workspace create research", "", 0, "ws_", "Workspace research was created"},
		{"workspace create more --json", "", 0, `"id": "ws_`, ""},
		{"workspace instructions", "", 0, nothing, ""},
		{"workspace instructions -", "Answer in French.\n", 0, nothing, "The instructions have been set."},
		{"workspace instructions", "", 0, "Answer in French.\n", ""},
		{"workspace rename ws_default Main", "", 0, nothing, "Workspace ws_default is now named Main."},
		{"workspace members main", "", 0, "Owner", ""},
		{"app list --workspace Main", "", 0, "sample", ""},
		{"app list --workspace research", "", 0, nothing, "No app is installed"},
		{"workspace members none", "", 1, "", "there is no workspace \"none\"; `ropewalk workspace list` shows them"},
		{"workspace delete More", "", 0, nothing, "Workspace More has been deleted."},
		{"user list", "", 0, "EMAIL", ""},
		{"user role nobody admin", "", 1, "", "there is no user \"nobody\"; `ropewalk user list` shows them; people are added when they first log in"},
		{"client-config claude-code", "", 0, "claude mcp add --transport http ropewalk " + url, ""},
		{"client-config inspector", "", 0, "npx -y @modelcontextprotocol/inspector@2 --transport http --server-url " + url + "/mcp/me", "Node.js 22.19"},
		{"client-config nobody", "", 2, "", "claude-code"},
		{"client-config chatgpt --write", "", 2, "", "no configuration file"},
		{"context set away", "", 2, "", "--server https://"},
		{"context set away http://127.0.0.1:1", "", 2, "", "usage: ropewalk context set NAME [--server URL]"},
		{"context set away --server http://127.0.0.1:1", "", 0, "", "Commands now use the context away: http://127.0.0.1:1"},
		{"app list", "", 1, "", "cannot reach the server at http://127.0.0.1:1, which the current context \"away\" (`ropewalk context list`) specifies: "},
		{"context remove away", "", 0, "", "Commands now use the server on this machine."},
		{"context set here --server " + url, "", 0, "", "Commands now use the context here: " + url},
		{"context list", "", 0, "here", ""},
		{"app list --context elsewhere", "", 2, "", `no context "elsewhere"`},
		{"app list --server http://127.0.0.1:1", "", 1, "", "ropewalk up"},
		{"config show", "", 0, nothing, "Every setting has its default"},
		{"config init", "", 0, "ropewalk.yaml", ""},
		{"config init", "", 1, "", "exists"},
		{"config check", "", 0, "configuration ok", ""},
		{"config show --all", "", 0, "http.port", ""},
		{"config schema", "", 0, `"$schema"`, ""},
		{"config chekc", "", 2, "", "ropewalk config check"},
		{"reload", "", 0, "", ""},
		{"version --json", "", 0, `"commit"`, ""},
		{"serv", "", 2, "", "ropewalk serve"},
		{"upp", "", 2, "", "did you mean `ropewalk up`?"},
		{"view set support --tools x", "", 2, "", "unknown flag: --tools; did you mean --tool?; see `ropewalk view set --help`"},
		{"nonsense --help", "", 2, "", `unknown command "nonsense" for "ropewalk"`},
		{"app instal -h", "", 2, "", "did you mean `ropewalk app install`?"},
		{"help", "", 0, "The server:", ""},
		{"help tool call", "", 0, "ropewalk tool call TOOL", ""},
		{"help serv", "", 2, "", `unknown command "serv" for "ropewalk"; did you mean ` + "`ropewalk serve`?"},
		{"help tool cal", "", 2, "", "did you mean `ropewalk tool call`?"},
		{"help serve nosuch", "", 2, "", `unknown command "nosuch" for "ropewalk serve"`},
		{"app uninstall sample", "", 0, "", ""},
		{"app list", "", 0, nothing, "No app is installed"},
		{"app list --json", "", 0, `"apps": []`, ""},
		{"app list --nothing", "", 2, "", "--help"},
	} {
		t.Run(c.line, func(t *testing.T) {
			out, errs, status := s.split(c.stdin, append([]string{"ropewalk"}, strings.Fields(c.line)...)...)
			if c.line == "reload" && status == 3 { // the configuration file written earlier has the default port
				status = 0
			}
			if c.stdout == nothing && out == "" {
				out = nothing
			}
			if status != c.status || !strings.Contains(out, c.stdout) || !strings.Contains(errs, c.stderr) {
				t.Errorf("status %d, want %d\nstdout: %s\nwant: %s\nstderr: %s\nwant: %s", status, c.status, out, c.stdout, errs, c.stderr)
			}
			if c.status != 0 && out != "" && !strings.HasPrefix(c.line, "chat") {
				t.Errorf("an error went to standard output: %s", out)
			}
		})
	}
}

func TestEventsArePrintedAsTheyHappen(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.up()
	var out testkit.Log
	cmd := s.command("ropewalk", "events", "--json", "--heartbeats")
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "an event is printed", func() bool {
		_, _, _ = s.split("", "ropewalk", "app", "stop", "sample")
		_, _, _ = s.split("", "ropewalk", "app", "uninstall", "sample")
		return out.Contains("bundle.")
	})
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after Ctrl-C, it exited with %v", err)
	}
	for _, e := range out.Entries() {
		if e["event"] == nil || e["data"] == nil {
			t.Errorf("printed %v", e)
		}
	}
}

func TestClientConfigurationsKeepWhatTheFileContained(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	url := s.up()
	s.write(".mcp.json", `{"other":1,"mcpServers":{"kept":{"command":"x"}}}`)
	if _, errs, status := s.split("", "ropewalk", "client-config", "claude-code", "--write"); status != 0 {
		t.Fatal(errs)
	}
	text, err := os.ReadFile(filepath.Join(s.dir, ".mcp.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Other      int
		MCPServers map[string]struct{ Type, URL, Command string }
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.Other != 1 || got.MCPServers["kept"].Command != "x" || !strings.HasPrefix(got.MCPServers["ropewalk"].URL, url+"/mcp") {
		t.Errorf("wrote %s", text)
	}
	s.write(".vscode.json", "")
	if err := os.MkdirAll(filepath.Join(s.dir, ".vscode"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.write(".vscode/mcp.json", "{ // a comment\n}")
	if _, errs, status := s.split("", "ropewalk", "client-config", "vscode", "--write"); status != 1 || !strings.Contains(errs, "by hand") {
		t.Errorf("a file with comments: %d %s", status, errs)
	}
}

func TestClientConfigSaysHowAClientGetsAKeyThatTheEndpointAccepts(t *testing.T) {
	t.Parallel()
	const key = "0123456789canary"
	s := newScript(t)
	s.environ = []string{"PATH=" + s.dir, "SERVICE_API_KEY=" + key}
	url := s.up()
	for client, goes := range map[string]string{
		"claude-code": "Set ROPEWALK_API_KEY to the key", "claude-desktop": "Replace YOUR_API_KEY", "cursor": "Set ROPEWALK_API_KEY to the key",
		"vscode": "Set ROPEWALK_API_KEY to the key", "inspector": "Set ROPEWALK_API_KEY to the key", "chatgpt": "configure an identity provider",
	} {
		for _, environ := range []string{"SERVICE_API_KEY=" + key, "ROPEWALK_API_KEY=" + key, "NO_COLOR=1"} {
			s.environ = []string{"PATH=" + s.dir, environ}
			out, errs, status := s.split("", "ropewalk", "client-config", client)
			name, value, _ := strings.Cut(environ, "=")
			if status != 0 || !strings.Contains(errs, goes) || client != "chatgpt" && !strings.Contains(errs, "`ropewalk key create NAME`") ||
				value == key && !strings.Contains(errs, "/mcp does not accept the key of "+name) {
				t.Errorf("%s with %s: status %d, %s", client, name, status, errs)
			}
			if strings.Contains(out+errs, "canary") || client != "chatgpt" && !strings.Contains(out, "API_KEY") {
				t.Errorf("%s with %s: the entry does not refer to a key, or it contains the key itself: %s", client, name, out)
			}
		}
	}
	s.environ = []string{"PATH=" + s.dir, "SERVICE_API_KEY=" + key}
	out, errs, _ := s.split("", "ropewalk", "key", "create", "laptop")
	s.environ = []string{"PATH=" + s.dir, "ROPEWALK_API_KEY=" + strings.TrimSpace(out)}
	for _, line := range [][]string{{}, {"--server", url}} {
		if _, errs, status := s.split("", append([]string{"ropewalk", "client-config", "claude-code"}, line...)...); status != 0 || errs != "" {
			t.Errorf("with an API key: status %d, %s", status, errs)
		}
	}
	if !strings.HasPrefix(out, "rwk_") {
		t.Errorf("no key was created: %s", errs)
	}
}

func TestStopShutsTheServerDownAndWaitsForIt(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	if _, errs, status := s.split("", "ropewalk", "stop"); status != 1 || !strings.Contains(errs, "no server is using the home "+s.home) {
		t.Errorf("without a server: status %d, %s", status, errs)
	}
	server := s.command("ropewalk", "serve", "--port", "0")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	wait := func() { ended <- server.Wait() }
	if runtime.GOOS != "linux" {
		go wait() // on other systems, a process that nobody has waited for looks like a running one
	}
	testkit.Eventually(t, "the server answers on its control socket", func() bool {
		_, err := control.Dial(s.home).Status(t.Context())
		return err == nil
	})
	if _, errs, status := s.split("", "ropewalk", "stop"); status != 0 || !strings.Contains(errs, "Stopped the server at http://127.0.0.1:") {
		t.Errorf("status %d, %s", status, errs)
	}
	if runtime.GOOS == "linux" {
		go wait()
	}
	if err, _ := testkit.Receive(t, "the server ends", ended); err != nil {
		t.Errorf("the server exited with %v", err)
	}
	if _, err := control.Dial(s.home).Status(t.Context()); !errors.Is(err, control.ErrNotRunning) {
		t.Errorf("the server still answers: %v", err)
	}
}

func TestServeSaysWhyItCannotListen(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	used := s.run("ropewalk", "serve", "--port", port(t, other.URL)).exits(1, "address already in use; choose another port with --port or http.port; `ropewalk doctor` reports")
	if strings.Contains(used.text, "listen tcp") {
		t.Error(used.text)
	}
	s.environ = []string{"SERVICE_API_KEY=0123456789abcdef"}
	s.run("ropewalk", "serve", "--host", "nothing.invalid").exits(1, "set --host or http.host to one of this machine's addresses")
}

func TestStatusSaysWhichKeyTheModelLacks(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	file := s.write("ropewalk.yaml", "models: {default: \"anthropic:x\"}\n")
	if err := os.Rename(file, filepath.Join(s.home, "ropewalk.yaml")); err != nil {
		t.Fatal(err)
	}
	s.up()
	s.run("ropewalk", "status").exits(0, "the model provider \"anthropic\" has no key", "ANTHROPIC_API_KEY")
}

func TestCommandsUseTheAddressInTheHomesConfiguration(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.run("ropewalk", "status").exits(1, "no server is using the home "+s.home) // the default address may belong to another server
	for text, want := range map[string]string{
		"http: {port: 1}\n":                   "cannot reach the server at http://127.0.0.1:1:",
		"http: {port: 1, host: 0.0.0.0}\n":    "cannot reach the server at http://127.0.0.1:1:",
		"http: {port: 1, host: \"::1\"}\n":    "cannot reach the server at http://[::1]:1:",
		"http: {port: 1}\napiKey: ${env:N}\n": "cannot reach the server at http://127.0.0.1:1:", // the variable is only set for the server
		"http: {port: 0}\n":                   "http.port is 0",
		"http: {port: x}\n":                   "http.port: must be a whole number",
	} {
		if err := os.WriteFile(filepath.Join(s.home, "ropewalk.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s.run("ropewalk", "status").exits(1, want)
	}
}

func TestConfigShowMarksVariablesSetOnlyForTheServerAsUnset(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	file := s.write("ropewalk.yaml", "apiKey: ${env:OF_THE_SERVER}\nhttp: {port: 8080}\n")
	out, errs, status := s.split("", "ropewalk", "config", "show", "--config", file)
	if status != 0 || !strings.Contains(errs, "warning: "+file+":1: apiKey: the environment variable OF_THE_SERVER is not set here; the server needs it") ||
		!strings.Contains(strings.Join(strings.Fields(out), " "), "apiKey [unset] "+file+":1 http.port 8080") {
		t.Errorf("status %d, %s\n%s", status, errs, out)
	}
	if out, _, status := s.split("", "ropewalk", "config", "show", "--json", "--config", file); status != 0 || !strings.Contains(out, `"value": "[unset]"`) {
		t.Errorf("status %d, %s", status, out)
	}
	s.run("ropewalk", "config", "check", "--config", file).exits(1, "OF_THE_SERVER is not set")
}

func TestManualPagesAndCompletionAreGeneratedFromTheCommands(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	if _, errs, status := s.split("", "ropewalk", "man", "man1"); status != 0 {
		t.Fatal(errs)
	}
	for _, page := range []string{"ropewalk.1", "ropewalk-app-install.1", "ropewalk-doctor.1"} {
		if _, err := os.Stat(filepath.Join(s.dir, "man1", page)); err != nil {
			t.Error(err)
		}
	}
	if bash, err := exec.LookPath("bash"); err == nil {
		out, _, _ := s.split("", "ropewalk", "completion", "bash")
		check := exec.Command(bash, "-n")
		check.Stdin = strings.NewReader(out)
		if text, err := check.CombinedOutput(); err != nil || len(out) < 1000 {
			t.Errorf("%v: %s", err, text)
		}
	}
}
