package main_test

import (
	"archive/zip"
	"bufio"
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/internal/testenv"
)

// block is one fenced block of commands in a page, with the comment before it:
//
//	<!-- run: server -->           runs with a server that `ropewalk up` started (the default)
//	<!-- run: nothing -->          runs without a server
//	<!-- run: bundles -->          runs with a server, a registry, an .mcpb file and a remote MCP server
//	<!-- run: plugin -->           runs with a server, in a folder with the plugin binary demo
//	<!-- run: installed -->        runs with a server whose session store is the plugin demo, in a folder with a new build of it
//	<!-- run: sdk -->              runs in a folder that finds this module without a network
//	<!-- run: go -->               runs with a server, in a folder whose go.mod finds the official MCP SDK without a network
//	<!-- run: typescript -->       runs with a server and installed npm packages, without a network
//	<!-- run by: test/examples --> a test in that folder runs it
type block struct {
	page    string
	line    int
	how     string
	why     string
	command string
}

// commandBlocks returns the blocks marked sh or console in a page.
func commandBlocks(t *testing.T, page string) []block {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(testenv.Root(t), page))
	if err != nil {
		t.Fatal(err)
	}
	directive := regexp.MustCompile(`^<!-- (run|run by): (.*) -->$`)
	var found []block
	var open *block
	next := block{how: "run", why: "server"}
	n := 0
	for lines := bufio.NewScanner(bytes.NewReader(raw)); lines.Scan(); {
		n++
		text := strings.TrimSpace(lines.Text())
		switch m := directive.FindStringSubmatch(text); {
		case open != nil && text == "```":
			found = append(found, *open)
			open = nil
		case open != nil:
			open.command += lines.Text() + "\n"
		case m != nil:
			next.how, next.why = m[1], m[2]
		case text == "```sh" || text == "```console":
			open = &block{page: page, line: n, how: next.how, why: next.why}
			next = block{how: "run", why: "server"}
		}
	}
	return found
}

// pages returns README.md, CONTRIBUTING.md and all pages in docs/.
func pages(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(testenv.Root(t), "docs", "*.md"))
	if err != nil || len(found) < 10 {
		t.Fatalf("%d pages, %v", len(found), err)
	}
	all := []string{"README.md", "CONTRIBUTING.md"}
	for _, page := range found {
		all = append(all, filepath.Join("docs", filepath.Base(page)))
	}
	return all
}

func TestEveryCommandBlockOfTheDocumentationRuns(t *testing.T) {
	for _, page := range pages(t) {
		for _, b := range commandBlocks(t, page) {
			switch b.how {
			case "run by":
				if tests, _ := filepath.Glob(filepath.Join(testenv.Root(t), b.why, "*_test.go")); !mentions(tests, filepath.Base(b.page)) {
					t.Errorf("%s:%d: no test in %s reads this page", b.page, b.line, b.why)
				}
			default:
				t.Run(b.page+" "+strings.TrimSpace(strings.SplitN(b.command, "\n", 2)[0]), func(t *testing.T) {
					t.Parallel()
					runBlock(t, b)
				})
			}
		}
	}
}

func mentions(files []string, text string) bool {
	for _, file := range files {
		if raw, err := os.ReadFile(file); err == nil && bytes.Contains(raw, []byte(text)) {
			return true
		}
	}
	return false
}

// runBlock runs a block with sh in a new directory, with the executable on the PATH and with its own home.
func runBlock(t *testing.T, b block) {
	s := newScript(t)
	commands := b.command
	switch b.why {
	case "nothing":
	case "server":
		commands = s.onServer(commands)
	case "bundles":
		commands = s.withBundles(commands)
	case "plugin":
		install(t, filepath.Join(built, "sessionstore-memory"), filepath.Join(s.dir, "demo"))
		commands = s.onServer(commands)
	case "installed":
		commands = s.withPlugin(commands)
	case "go":
		s.environ = append(testenv.GoEnviron("-mod=mod"), "GOPROXY=off", "GOSUMDB=off")
		module := `cp "$ROPEWALK/go.sum" . && sed "s/^module .*/module hello/" "$ROPEWALK/go.mod" > go.mod`
		commands = s.onServer(regexp.MustCompile(`(?m)^go mod init .*$`).ReplaceAllLiteralString(commands, module))
	case "typescript":
		packages := filepath.Join(testenv.Packages(t, filepath.Join("test", "clients")), "node_modules")
		commands = s.onServer(regexp.MustCompile(`(?m)^npm install .*$`).ReplaceAllLiteralString(commands, "ln -s "+packages+" node_modules"))
	case "sdk":
		s.environ = append(testenv.GoEnviron("-mod=mod"), "GOPROXY=off", "GOSUMDB=off")
		commands = strings.ReplaceAll(commands, "plugin init ", "plugin init --sdk "+testenv.Root(t)+" ")
	default:
		t.Fatalf("%s:%d: <!-- run: %s --> is unknown", b.page, b.line, b.why)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-euc", commands)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "PATH="+built+":"+os.Getenv("PATH"), "ROPEWALK_HOME="+s.home, "NO_COLOR=1", "ROPEWALK="+testenv.Root(t), "ROPEWALK_CONTEXTS="+filepath.Join(s.home, "contexts.yaml"))
	cmd.Env = append(cmd.Env, s.environ...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s:%d: %v\n%s", b.page, b.line, err, out)
	}
}

// onServer starts a server for the commands. The command `ropewalk up` never ends, so it becomes `ropewalk status`. The
// default address is replaced with the server's.
func (s *script) onServer(commands string) string {
	url := s.up()
	commands = regexp.MustCompile(`(?m)^ropewalk up$`).ReplaceAllString(commands, "ropewalk status")
	return strings.ReplaceAll(commands, "http://127.0.0.1:27247", url)
}

// withPlugin starts a server whose session store is the installed plugin demo. The file demo in the directory
// is a new build of that plugin.
func (s *script) withPlugin(commands string) string {
	s.t.Helper()
	from := filepath.Join(built, "sessionstore-memory")
	install(s.t, from, filepath.Join(s.home, "plugins", "sessionstore-demo"))
	change(s.t, install(s.t, from, filepath.Join(s.dir, "demo")))
	s.write(filepath.Join(s.home, "ropewalk.yaml"), "sessionStore: demo\n")
	return strings.ReplaceAll(s.onServer(commands), "~/.ropewalk", s.home)
}

// withBundles starts a server with the things that the commands install: the bundle @scope/bundle in a
// registry, the file app.mcpb, and a remote MCP server.
func (s *script) withBundles(commands string) string {
	s.t.Helper()
	remote := mcp.NewServer(&mcp.Implementation{Name: "remote", Version: "1.0.0"}, nil)
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return remote }, &mcp.StreamableHTTPOptions{Stateless: true})
	endpoint := httptest.NewServer(handler)
	s.t.Cleanup(endpoint.Close)
	bundles := filepath.Join(s.dir, "bundles")
	s.bundle(filepath.Join(bundles, "bundle.mcpb"), "@scope/bundle")
	s.bundle(filepath.Join(s.dir, "app.mcpb"), "app")
	s.write(filepath.Join(s.home, "ropewalk.yaml"), "registries:\n- {name: local, adapter: directory, dir: "+bundles+"}\n")
	return strings.ReplaceAll(s.onServer(commands), "https://tools.example.com/mcp", endpoint.URL)
}

// bundle writes an .mcpb file. Its server has no tools.
func (s *script) bundle(path, name string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	file, err := os.Create(path)
	if err != nil {
		s.t.Fatal(err)
	}
	archive := zip.NewWriter(file)
	for name, text := range map[string]string{
		"manifest.json": `{"manifest_version":"0.3","name":"` + name + `","version":"1.0.0","description":"A bundle.","author":{"name":"Ada"},
"server":{"type":"node","entry_point":"server.js","mcp_config":{"command":"node","args":["${__dirname}/server.js"]}}}`,
		"server.js": emptyServer,
	} {
		entry, err := archive.Create(name)
		if err == nil {
			_, err = entry.Write([]byte(text))
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	if err := errors.Join(archive.Close(), file.Close()); err != nil {
		s.t.Fatal(err)
	}
}

// emptyServer is an MCP server without tools.
const emptyServer = `require("node:readline").createInterface({input: process.stdin}).on("line", (line) => {
  const m = JSON.parse(line);
  if (m.id === undefined) return;
  const result = m.method === "initialize"
    ? {protocolVersion: m.params.protocolVersion, capabilities: {tools: {}}, serverInfo: {name: "bundle", version: "1.0.0"}}
    : m.method === "tools/list" ? {tools: []} : {};
  console.log(JSON.stringify({jsonrpc: "2.0", id: m.id, result}));
});
`
