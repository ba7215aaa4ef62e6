package main_test

import (
	"archive/zip"
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

var listening = regexp.MustCompile(`server listening.*url=(http://\S+)`)

// up starts a server with the sample app on a free port and waits until it runs.
func (s *script) up() (url string) {
	s.t.Helper()
	cmd := s.command("ropewalk", "up", "--port", "0")
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
		s.t.Errorf("the hints do not lead to this program and this home: %s", hints.String())
	}
	if !hints.Contains(url + "/v1/tools/call") {
		s.t.Errorf("the hints do not name the address: %s", hints.String())
	}
	if address, _, _ := s.split("", "ropewalk", "client-config", "claude-code"); !hints.Contains("\""+url+"/mcp/me\"") || !strings.Contains(address, " "+url+"/mcp/me") {
		s.t.Errorf("the hints name another address than client-config: %s and %s", hints.String(), address)
	}
	return url
}

// split runs a command with standard output and standard error apart.
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

func TestAServerIsDrivenFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.environ = []string{"ROPEWALK_CONTEXTS=" + filepath.Join(s.dir, "contexts.yaml"), "NO_COLOR=1"}
	url := s.up()
	const nothing = "\x00" // in place of the text on standard output: there is none
	for _, c := range []struct {
		line, stdin    string
		status         int
		stdout, stderr string
	}{
		{"status", "", 0, "Apps       1, with 4 tools\n", ""},
		{"completion tcsh", "", 2, "", `unknown command "tcsh" for "ropewalk completion"`},
		{"completion bash", "", 0, "bash completion", ""},
		{"log level debug", "", 2, "", `"debug" must be COMPONENT=LEVEL, such as apps=debug`},
		{"serve --port abc", "", 2, "", "--port: want a whole number, not \"abc\"; see"},
		{"key create x --expires-in 1d", "", 2, "", "--expires-in: want a duration, such as 30s or 12h, not \"1d\""},
		{"status --json", "", 0, `"workspace"`, ""},
		{"app list", "", 0, "sample", ""},
		{"app list --json", "", 0, `"apps"`, ""},
		{"app stop sample", "", 0, "sample is stopped", ""},
		{"app start sample", "", 0, "sample is running", ""},
		{"app uninstall nothing", "", 1, "", "nothing"},
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
		{"events --only [", "", 2, "", "--only [: not a pattern"},
		{"events --only bundle.ded --server http://127.0.0.1:1", "", 1, "", "--only bundle.ded matches no known event"},
		{"plugin info directory", "", 0, "path         built in", ""},
		{"plugin info directory", "", 0, "\nversion      dev\n", ""},
		{"plugin info registry-directory", "", 0, "kind         registry\nname         directory", ""},
		{"plugin info directory --kind auth", "", 1, "", `no plugin is named "directory"`},
		{"plugin info direktory", "", 1, "", "did you mean directory?"},
		{"client-config", "", 2, "", "missing CLIENT, one of chatgpt, claude-code"},
		{"app stop", "", 2, "", "missing NAME; usage: ropewalk app stop NAME"},
		{"status now", "", 2, "", `unexpected argument "now"`},
		{"key create laptop", "", 0, "rwk_", "It is not shown again"},
		{"key create laptop --json", "", 0, `"key": "rwk_`, ""},
		{"chat hello", "", 1, "", "models.default"},
		{"chat --conversation nonsense", "", 1, "", `you have no conversation "nonsense" in this workspace`},
		{"chat --conversation nonsense hello", "", 1, "", `you have no conversation "nonsense" in this workspace`},
		{"chat --conversation conv_0123456789abcdef hello", "", 1, "", `you have no conversation "conv_0123456789abcdef" in this workspace`},
		{"chat --conversation conv_0123456789abcdef --workspace nonsense hello", "", 1, "", "is not of the form ws_<alphanumeric>"},
		{"conversation list", "", 0, "TITLE", ""},
		{"conversation show nonsense", "", 1, "", `you have no conversation "nonsense" in this workspace`},
		{"key revoke nonsense", "", 1, "", `this workspace has no API key "nonsense"`},
		{"usage", "", 0, "total", ""},
		{"usage --by nothing", "", 2, "", "--by must be one of day, model"},
		{"debug profile hat", "", 2, "", "goroutine"},
		{"workspace list", "", 0, "ws_", ""},
		{"user list", "", 0, "EMAIL", ""},
		{"client-config claude-code", "", 0, "claude mcp add --transport http ropewalk " + url, ""},
		{"client-config inspector", "", 0, "npx -y @modelcontextprotocol/inspector@2 --transport http --server-url " + url + "/mcp/me", "Node.js 22.19"},
		{"client-config nobody", "", 2, "", "claude-code"},
		{"client-config chatgpt --write", "", 2, "", "no configuration file"},
		{"context set away --server http://127.0.0.1:1", "", 0, "", "Commands use the context away: http://127.0.0.1:1"},
		{"app list", "", 1, "", "cannot reach the server at http://127.0.0.1:1, which the current context \"away\" (`ropewalk context list`) names: "},
		{"context remove away", "", 0, "", "Commands use the server on this machine."},
		{"context set here --server " + url, "", 0, "", "Commands use the context here: " + url},
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
			if c.line == "reload" && status == 3 { // the file that was written names the default port
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
		t.Errorf("Ctrl-C is not how it ends: %v", err)
	}
	for _, e := range out.Entries() {
		if e["event"] == nil || e["data"] == nil {
			t.Errorf("printed %v", e)
		}
	}
}

func TestClientConfigurationsAreWrittenBesideWhatIsThere(t *testing.T) {
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
		t.Errorf("written %s", text)
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

func TestDoctorNamesWhatIsWrongWithItsRemedy(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.environ = []string{"PATH=" + s.dir} // without runtimes to examine
	demo := install(t, filepath.Join(built, "sessionstore-memory"), filepath.Join(s.dir, "demo"))
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"status":"ok","uptime":1,"bundles":[]}`))
	}))
	t.Cleanup(server.Close)
	for name, c := range map[string]struct {
		config string
		says   []string
	}{
		"a setting that does not exist": {"htpt: {port: 1}\n", []string{"configuration", "htpt", "config schema"}},
		"a database that is away":       {"storage: {url: \"postgres://u:canary@127.0.0.1:1/x\"}\n", []string{"database", "connection refused", "storage.url"}},
		"an identity provider that is away": {
			"auth: {adapter: oidc, issuer: \"http://127.0.0.1:1\", clientId: x}\n", []string{"identity", "auth.issuer"},
		},
		"a plugin that does not exist": {"sessionStore: {adapter: nothing}\n", []string{"nothing"}},
		"a plugin whose file changed": {
			"sessionStore: {adapter: demo, path: " + demo + ", sha256: " + strings.Repeat("0", 64) + "}\n", []string{"does not match its sha256", "put the original back"},
		},
		"a registry that is away": {
			"registries: [{name: official, adapter: mcp-registry, url: \"https://127.0.0.1:1\", allowPrivateNetwork: true}]\n",
			[]string{"registry", "official", "connection refused", "DNS"},
		},
		"a port that another program has": {"http: {port: " + port(t, other.URL) + "}\n", []string{"port", "another program listens there", "http.port"}},
		"a port of another server":        {"http: {port: " + port(t, server.URL) + "}\n", []string{"port", "a Ropewalk server with another home"}},
		"a model that cannot be reached":  {"models: {default: \"m:x\", providers: {m: {type: openai, baseUrl: \"http://127.0.0.1:1\"}}}\n", []string{"model", "connection refused", "baseUrl"}},
		"a model without a key":           {"models: {default: \"anthropic:x\"}\n", []string{"model", "has no key", "ANTHROPIC_API_KEY", "docs/models.md"}},
		"tabs in the file":                {"http:\n\tport: 1\n", []string{"not YAML", "with spaces"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := s.write("doctor.yaml", c.config)
			out, errs, status := s.split("", "ropewalk", "doctor", "--deep", "--config", file)
			if status != 1 {
				t.Errorf("status %d: %s", status, errs)
			}
			for _, text := range c.says {
				if !strings.Contains(out, text) {
					t.Errorf("%q is missing in\n%s", text, out)
				}
			}
			if strings.Contains(out+errs, "canary") {
				t.Error("a secret is shown")
			}
		})
	}
}

func TestDoctorExaminesARunningServerWhoseVariablesItDoesNotHave(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	nowhere := t.TempDir()
	s.write(filepath.Join(s.home, "ropewalk.yaml"), "models: {default: \"m:x\", providers: {m: {type: openai, baseUrl: \"http://127.0.0.1:1\", apiKey: \"${env:OF_THE_SERVER}\"}}}\n")
	s.run("ropewalk", "doctor").exits(1, "error    configuration", "set OF_THE_SERVER where the server is started", "home            "+s.home)
	path := os.Getenv("PATH")
	s.environ = []string{"OF_THE_SERVER=secret", "PATH=" + nowhere}
	s.up()
	s.environ = []string{"PATH=" + path}
	out, errs, status := s.split("", "ropewalk", "doctor")
	for _, text := range []string{
		"warning  configuration", "OF_THE_SERVER is not set here; the running server may have it", "is running at ", "the server is ready",
		"1 running, 0 stopped", "sessionstore memory", "not found on the server's PATH, " + nowhere, "restart the server",
	} {
		if status != 0 || !strings.Contains(out, text) {
			t.Errorf("status %d, %q is missing in\n%s%s", status, text, out, errs)
		}
	}
	s.run("ropewalk", "backup", "running.db").exits(0)
}

func TestAKeyThatTheServerDoesNotAcceptIsNamed(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.environ = []string{"PATH=" + s.dir, "SERVICE_API_KEY=0123456789abcdef"}
	s.up()
	s.environ = []string{"PATH=" + s.dir, "ROPEWALK_API_KEY=rwk_canary"}
	refused := s.run("ropewalk", "status").exits(1, "the server does not accept the key of ROPEWALK_API_KEY: ", "`ropewalk key create` makes one")
	examined := s.run("ropewalk", "doctor").exits(1, "error    API key", "the server does not accept the key of ROPEWALK_API_KEY", "or unset it")
	if strings.Contains(refused.text+examined.text, "canary") {
		t.Error("the key is shown")
	}
	s.environ = []string{"PATH=" + s.dir}
	s.run("ropewalk", "status").exits(1, "not authenticated: set ROPEWALK_API_KEY")
}

func TestClientConfigSaysHowAClientGetsAKeyThatTheEndpointAccepts(t *testing.T) {
	t.Parallel()
	const key = "0123456789canary"
	s := newScript(t)
	s.environ = []string{"PATH=" + s.dir, "SERVICE_API_KEY=" + key}
	url := s.up()
	for client, goes := range map[string]string{
		"claude-code": "Set ROPEWALK_API_KEY to the key", "claude-desktop": "in place of YOUR_API_KEY", "cursor": "Set ROPEWALK_API_KEY to the key",
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
				t.Errorf("%s with %s: the entry has no reference to a key, or the key itself: %s", client, name, out)
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

func TestServeSaysWhyItCannotListen(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	used := s.run("ropewalk", "serve", "--port", port(t, other.URL)).exits(1, "address already in use; choose another port with --port or http.port; `ropewalk doctor` says")
	if strings.Contains(used.text, "listen tcp") {
		t.Error(used.text)
	}
	s.environ = []string{"SERVICE_API_KEY=0123456789abcdef"}
	s.run("ropewalk", "serve", "--host", "nothing.invalid").exits(1, "listen on an address of this machine with --host or http.host")
}

func TestAModelWhoseKeyIsRefusedIsNamedWithTheSetting(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.environ = []string{"PATH=" + s.dir}
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(provider.Close)
	s.write(filepath.Join(s.home, "ropewalk.yaml"), "models: {default: \"m:x\", providers: {m: {type: openai, baseUrl: \""+provider.URL+"\", apiKey: canary}}}\n")
	s.up()
	examined := s.run("ropewalk", "doctor", "--deep").exits(1, "status 401", "set models.providers.m.apiKey to a key that the provider accepts")
	if strings.Contains(examined.text, "firewall") {
		t.Error(examined.text)
	}
	s.run("ropewalk", "chat", "hello").exits(1, "does not accept the server's key (models.providers.m.apiKey)")
}

func TestDoctorSaysWhatToDoAboutAnAddressThatIsNotOfThisMachine(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.environ = []string{"PATH=" + s.dir}
	out, _, _ := s.split("", "ropewalk", "doctor", "--host", "nothing.invalid", "--config", s.write("keyed.yaml", "apiKey: 0123456789abcdef\n"))
	if !strings.Contains(out, "error    port            nothing.invalid:27247: ") || !strings.Contains(out, "set http.host or --host to an address of this machine") ||
		strings.Contains(out, "end the program") {
		t.Error(out)
	}
}

func TestDoctorNamesAHomeThatIsAFile(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.environ = []string{"PATH=" + s.dir}
	out, _, status := s.split("", "ropewalk", "doctor", "--home", s.write("file", ""))
	if status != 1 || strings.Count(out, "file is not a directory") != 1 || !strings.Contains(out, "→ choose another with --home or ROPEWALK_HOME") || strings.Contains(out, "correct the file") || strings.Contains(out, "socket") {
		t.Errorf("status %d:\n%s", status, out)
	}
}

func TestDoctorWritesARemedyOfSeveralFindingsOnce(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.environ = []string{"PATH=" + s.dir}
	out, _, _ := s.split("", "ropewalk", "doctor", "--config", s.write("doctor.yaml", "a: 1\nb: 2\nc: 3\n"))
	if strings.Count(out, ": unknown key") != 3 || strings.Count(out, "correct the file") != 1 {
		t.Error(out)
	}
}

func TestAnAppWhoseFilesWereChangedIsNamedByDoctorAndTheListOfApps(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.up()
	s.bundle(filepath.Join(s.dir, "notes.mcpb"), "notes")
	s.run("ropewalk", "app", "install", "./notes.mcpb").exits(0)
	files, err := filepath.Glob(filepath.Join(s.home, "apps", "notes", "bundle", "*", "manifest.json"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if err := os.WriteFile(files[0], []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.run("ropewalk", "app", "stop", "notes").exits(0)
	s.run("ropewalk", "app", "start", "notes").exits(1, "(manifest.json)")
	if _, errs, status := s.split("", "ropewalk", "app", "list"); status != 0 || !strings.Contains(errs, "notes is stopped: the files of the app were changed") {
		t.Errorf("app list: status %d, %s", status, errs)
	}
	s.run("ropewalk", "doctor").exits(1, "notes of ws_default is stopped: the files of the app were changed", "`ropewalk app uninstall notes` and install it again")
	s.run("ropewalk", "app", "remove", "notes").exits(0)
	if out, _, _ := s.split("", "ropewalk", "doctor"); !strings.Contains(out, "1 running, 0 stopped") || strings.Contains(out, "error ") {
		t.Errorf("without the app doctor says\n%s", out)
	}
}

func TestAModelWithoutItsKeyIsOneFinding(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.environ = []string{"PATH=" + s.dir}
	file := s.write("keyless.yaml", "models: {default: \"anthropic:x\", fast: \"anthropic:y\"}\n")
	out, errs, status := s.split("", "ropewalk", "doctor", "--config", file)
	if status != 1 || strings.Count(out, "has no key") != 1 || !strings.Contains(out, "models.default and models.fast name the provider anthropic") {
		t.Errorf("doctor: status %d, %s\n%s", status, errs, out)
	}
	_, errs, status = s.split("", "ropewalk", "config", "check", "--config", file)
	if status != 0 || strings.Count(errs, "has no key") != 1 {
		t.Errorf("config check: status %d, %s", status, errs)
	}
}

func TestAModelWithoutItsKeyHidesNothing(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.environ = []string{"PATH=" + s.dir}
	provider := testenv.StartModelProvider(t)
	provider.Say(t, `{"match":{},"response":{"content":"ok"}}`)
	const fast = "models.fast names the provider anthropic, which has no key"
	for name, c := range map[string]struct {
		models string
		status int
		says   []string
	}{
		"no default":        {`{fast: "anthropic:y"}`, 0, []string{"warning  model", "no model is configured", fast}},
		"another default":   {`{default: "m:x", fast: "anthropic:y", providers: {m: {type: openai, baseUrl: "` + provider.URL + `/v1", apiKey: k}}}`, 0, []string{fast, "m:x answers"}},
		"prices of no file": {`{default: "anthropic:x", prices: ` + s.dir + `/none.json}`, 1, []string{"models.default names the provider anthropic, which has no key", "none.json"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, status := s.split("", "ropewalk", "doctor", "--deep", "--config", s.write("models.yaml", "http: {port: 0}\nmodels: "+c.models+"\n"))
			if status != c.status || strings.Count(out, "has no key") != 1 {
				t.Errorf("status %d, %s\n%s", status, errs, out)
			}
			for _, text := range c.says {
				if !strings.Contains(out, text) {
					t.Errorf("%q is missing in\n%s", text, out)
				}
			}
		})
	}
}

func TestStatusSaysWhichKeyTheModelLacks(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	file := s.write("ropewalk.yaml", "models: {default: \"anthropic:x\"}\n")
	if err := os.Rename(file, filepath.Join(s.home, "ropewalk.yaml")); err != nil {
		t.Fatal(err)
	}
	s.up()
	s.run("ropewalk", "status").exits(0, "the model provider anthropic has no key", "ANTHROPIC_API_KEY")
}

func TestCommandsAskTheAddressOfTheHomesConfiguration(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	for text, want := range map[string]string{
		"http: {port: 1}\n":                   "cannot reach the server at http://127.0.0.1:1:",
		"http: {port: 1, host: 0.0.0.0}\n":    "cannot reach the server at http://127.0.0.1:1:",
		"http: {port: 1, host: \"::1\"}\n":    "cannot reach the server at http://[::1]:1:",
		"http: {port: 1}\napiKey: ${env:N}\n": "cannot reach the server at http://127.0.0.1:1:", // the variable is the server's
		"http: {port: 0}\n":                   "http.port is 0",
		"http: {port: x}\n":                   "http.port: want a whole number",
	} {
		if err := os.WriteFile(filepath.Join(s.home, "ropewalk.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s.run("ropewalk", "status").exits(1, want)
	}
}

func TestConfigShowShowsWhatIsSetForTheServerOnlyAsUnset(t *testing.T) {
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

func TestDoctorExaminesThePortOfTheFlag(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.environ = []string{"PATH=" + s.dir}
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	out, _, status := s.split("", "ropewalk", "doctor", "--port", port(t, other.URL))
	if status != 1 || !strings.Contains(out, "127.0.0.1:"+port(t, other.URL)+": another program listens there") {
		t.Errorf("status %d:\n%s", status, out)
	}
}

func TestAHomeThatCannotBeCreatedIsNamedWithItsRemedy(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.environ = []string{"PATH=" + s.dir}
	const home = "/proc/nohome" // nobody creates a directory there, not even root
	for _, line := range [][]string{{"doctor"}, {"up", "--port", "0"}, {"serve", "--port", "0"}, {"config", "init"}} {
		out, errs, status := s.split("", append(append([]string{"ropewalk"}, line...), "--home", home)...)
		for _, text := range []string{"the home /proc/nohome cannot be created: ", "write to /proc", "choose another home with --home or ROPEWALK_HOME"} {
			if status != 1 || !strings.Contains(out+errs, text) {
				t.Errorf("%s: status %d, %q is missing in\n%s%s", line, status, text, out, errs)
			}
		}
	}
}

func TestAHomeThatCannotBeWrittenIsNamedWithItsRemedy(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.environ = []string{"PATH=" + s.dir}
	program := install(t, filepath.Join(built, "ropewalk"), filepath.Join(s.dir, "ropewalk"))
	var ordinary *syscall.SysProcAttr
	if os.Geteuid() == 0 { // root writes everywhere
		ordinary = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	for _, dir := range []string{filepath.Dir(s.dir), s.dir} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	says := func(mode os.FileMode, texts ...string) {
		if err := os.Chmod(s.home, mode); err != nil {
			t.Fatal(err)
		}
		for _, line := range [][]string{{"up", "--port", "0"}, {"serve", "--port", "0"}, {"config", "init"}} {
			cmd := s.command(program, line...)
			cmd.SysProcAttr = ordinary
			out, err := cmd.CombinedOutput()
			for _, text := range append(texts, "permission denied", "let this user (id ", "or choose another home with --home or ROPEWALK_HOME") {
				if err == nil || !strings.Contains(string(out), text) {
					t.Errorf("%s with mode %o: %v, %q is missing in\n%s", line, mode, err, text, out)
				}
			}
		}
	}
	says(0o555, "the home "+s.home+" cannot be written: ", "mode 555")
	says(0) // then the configuration cannot be read
	if err := os.Chmod(s.home, 0o700); err != nil {
		t.Fatal(err)
	}
}

func TestAPluginWhoseFileWasReplacedIsAWarningWhileItsCopyServes(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.environ = []string{"PATH=" + s.dir}
	demo := install(t, filepath.Join(built, "sessionstore-memory"), filepath.Join(s.dir, "demo"))
	sum := s.run("ropewalk", "plugin", "info", demo).exits(0).row("sha256")[1]
	s.write(filepath.Join(s.home, "ropewalk.yaml"), "sessionStore: {adapter: demo, path: "+demo+", sha256: "+sum+"}\n")
	s.up()
	change(t, demo)
	says := []string{
		"ropewalk.yaml:1: sessionStore.path: the file " + demo + " was replaced: its sha256 is ", ", and not " + sum, "The server starts " + s.home,
		"put the file back, or set sha256 to that of the new one and run `ropewalk reload`",
	}
	_, errs, status := s.split("", "ropewalk", "config", "check")
	out, _, examined := s.split("", "ropewalk", "doctor")
	for _, text := range says {
		if status != 0 || !strings.Contains(errs, text) {
			t.Errorf("config check: status %d, %q is missing in\n%s", status, text, errs)
		}
		if examined != 0 || !strings.Contains(out, text) {
			t.Errorf("doctor: status %d, %q is missing in\n%s", examined, text, out)
		}
	}
	if !strings.HasPrefix(errs, "warning: ") || !strings.Contains(out, "warning  adapters") {
		t.Errorf("not a warning:\n%s\n%s", errs, out)
	}
	s.run("ropewalk", "plugin", "verify").exits(1, "changed")
	copies, err := filepath.Glob(filepath.Join(s.home, "plugins", ".sessionstore-demo.*"))
	if err != nil || len(copies) != 1 {
		t.Fatal(copies, err)
	}
	if err := os.Remove(copies[0]); err != nil {
		t.Fatal(err)
	}
	s.run("ropewalk", "config", "check").exits(1, "content does not match its sha256") // nothing is left to start
}

func TestDoctorNamesAProgramAndAFolderThatAreGone(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	folder, program := filepath.Join(s.dir, "registry"), filepath.Join(s.dir, "program")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	install(t, filepath.Join(built, "ropewalk"), program)
	config := "registries: [{name: here, adapter: directory, dir: " + folder + "}]\n"
	if err := os.WriteFile(filepath.Join(s.home, "ropewalk.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s.up()
	bundle := filepath.Join(s.dir, "gone")
	if err := os.Mkdir(bundle, 0o700); err != nil {
		t.Fatal(err)
	}
	s.write("gone/manifest.json", `{"manifest_version":"0.3","name":"@test/gone","version":"1.0.0","description":"x","author":{"name":"x"},`+
		`"server":{"type":"binary","entry_point":"x","mcp_config":{"command":"`+program+`","args":["sample"]}}}`)
	s.run("ropewalk", "app", "install", bundle).exits(0)
	s.run("ropewalk", "app", "stop", "gone").exits(0)
	if err := errors.Join(os.Remove(program), os.Remove(folder)); err != nil {
		t.Fatal(err)
	}
	s.run("ropewalk", "app", "start", "gone").exits(1, "program not found: "+program)
	out, _, status := s.split("", "ropewalk", "doctor")
	for _, text := range []string{
		"program not found: " + program, "install the program, or put it back", "the server's PATH, " + os.Getenv("PATH"),
		"registries[0].dir: cannot be read: stat " + folder, "create it, mount it or put it back, or correct the setting",
	} {
		if status != 1 || !strings.Contains(out, text) {
			t.Errorf("status %d, %q is missing in\n%s", status, text, out)
		}
	}
}

// port returns the port of an address.
func port(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Port()
}

func TestDoctorNamesADamagedDatabase(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.environ = []string{"PATH=" + s.dir}
	if err := os.WriteFile(filepath.Join(s.home, "ropewalk.db"), []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, status := s.split("", "ropewalk", "doctor")
	if status != 1 || !strings.Contains(out, "is damaged or is not a database") || !strings.Contains(out, "`ropewalk restore`") {
		t.Errorf("status %d:\n%s", status, out)
	}
}

func TestDoctorNamesAHomeThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	out, _, status := s.split("", "ropewalk", "doctor", "--home", "/proc/self")
	if status != 1 || !strings.Contains(out, "/proc/self cannot be written") || !strings.Contains(out, "ROPEWALK_HOME") {
		t.Errorf("status %d:\n%s", status, out)
	}
}

func TestDoctorBeginsALoginAtTheIdentityProvider(t *testing.T) {
	t.Parallel()
	const callback = "http://127.0.0.1:1/v1/auth/callback"
	provider := testenv.StartOpenIDProvider(t, callback)
	s := newScript(t)
	s.environ = []string{"PATH=" + s.dir} // without runtimes to examine
	for client, want := range map[string]string{
		"clientId: ropewalk, redirectUri: \"" + callback + "\"":                           "accepts the client id and the redirect URI",
		"clientId: nobody, redirectUri: \"" + callback + "\"":                             "register auth.clientId",
		"clientId: ropewalk, redirectUri: \"https://tools.example.com/v1/auth/callback\"": "exactly the redirect URI",
	} {
		file := s.write("doctor.yaml", "auth: {adapter: oidc, issuer: \""+provider.Issuer+"\", "+client+"}\n")
		out, _, _ := s.split("", "ropewalk", "doctor", "--config", file)
		if !strings.Contains(out, "login ") || !strings.Contains(out, want) {
			t.Errorf("%s: %q is missing in\n%s", client, want, out)
		}
	}
}

func TestTheSupportBundleHoldsNoSecrets(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.environ = []string{"SERVICE_API_KEY=canary-canary-canary"}
	file := s.write("ropewalk.yaml", "storage: {url: \"postgres://u:canary@127.0.0.1:1/x\"}\n")
	path := filepath.Join(s.dir, "support.zip")
	_, _, _ = s.split("", "ropewalk", "doctor", "--config", file, "--bundle", path)
	archive, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	if len(archive.File) < 3 {
		t.Errorf("%d parts", len(archive.File))
	}
	for _, part := range archive.File {
		r, err := part.Open()
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if _, err := text.ReadFrom(r); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text.String(), "canary") {
			t.Errorf("%s holds a secret: %s", part.Name, text.String())
		}
	}
}

func TestManualPagesAndCompletionComeFromTheCommands(t *testing.T) {
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

// The command blocks of the guides are what a new user types.
