package source

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/bundle"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

func TestAnMCPClientsDefinitionInstallsThePackageThatItRuns(t *testing.T) {
	for _, c := range []struct{ name, definition, want string }{
		{"npx", `{"command":"npx","args":["-y","@scope/server@1.2.3","/data"]}`, "npm @scope/server 1.2.3 [/data]"},
		{"npx without a version", `{"command":"npx","args":["server"]}`, "npm server  []"},
		{"npx with a package and its command", `{"command":"npx","args":["-y","--package","x@2","server","--port","1"]}`, "npm x 2 server [--port 1]"},
		{"npx with a package after =", `{"command":"npx","args":["--package=@a/b","-y","serve"]}`, "npm @a/b  serve []"},
		{"npx with two packages", `{"command":"npx","args":["-p","x","-p","y","server"]}`, "command npx  [-p x -p y server]"},
		{"npx with an unknown option", `{"command":"npx","args":["--call","x","server"]}`, "command npx  [--call x server]"},
		{"uvx with a project and its command", `{"command":"uvx","args":["--from","mcp[cli]==1.2","mcp","run"]}`, "pypi mcp[cli] 1.2 mcp [run]"},
		{"uvx from a repository", `{"command":"uvx","args":["--from","git+https://a.test/x","serve"]}`, "command uvx  [--from git+https://a.test/x serve]"},
		{"uvx", `{"command":"uvx","args":["mcp-server-time==2.0","--tz","UTC"]}`, "pypi mcp-server-time 2.0 [--tz UTC]"},
		{"another command", `{"command":"docker","args":["run","x"]}`, "command docker  [run x]"},
		{"a URL", `{"url":"https://a.test/mcp"}`, "url https://a.test/mcp  []"},
		{"a URL under another name", `{"httpUrl":"https://a.test/mcp","timeout":5,"disabled":false}`, "url https://a.test/mcp  []"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := ParseServer("x", json.RawMessage(c.definition), nil)
			if err != nil {
				t.Fatal(err)
			}
			o, err := r.Request.Order("ws_default")
			if err != nil {
				t.Fatal(err)
			}
			got := strings.TrimSuffix(string(o.Source.Kind)+" "+o.Source.Ref+" "+o.Version+" "+o.Source.Bin, " ") + " [" + strings.Join(o.Args, " ") + "]"
			if got != c.want || o.ServerName != "x" {
				t.Errorf("got %s as %s, want %s", got, o.ServerName, c.want)
			}
		})
	}
}

func TestACommandIsNamedAfterTheScriptOrModuleThatItRuns(t *testing.T) {
	for line, want := range map[string]string{
		"python3 /srv/notes.py --port 1": "notes", "node /srv/weather/build/index.js": "weather", "node ./build/index.js": "node", "python -m my_server": "my_server",
		"docker run -i image": "docker", "/opt/bin/thing serve": "thing", "node /srv/system.js": "srv", "bun run src/server.ts": "bun", "java -jar /opt/a-1.2.jar": "a-1.2",
	} {
		words := strings.Fields(line)
		if got := commandName(words[0], words[1:]); got != want {
			t.Errorf("%s is named %s, want %s", line, got, want)
		}
	}
}

func TestADefinitionThatOnlyItsClientCanUseIsRefusedWithAdvice(t *testing.T) {
	for definition, want := range map[string]string{
		`{"command":"npx","args":["-y","server","${workspaceFolder}/data"]}`: "mcpServers.x.args[2] contains ${workspaceFolder}, which only the client can replace; put its value there instead",
		`{"command":"node","args":["server.js"],"cwd":"."}`:                  "mcpServers.x: its working directory is relative to a folder on the client's machine; give an absolute path on the server's machine",
		`{"command":"npx","args":["server"],"envFile":".env"}`:               "mcpServers.x.envFile is a file on the client's machine: give its variables as env",
		`{"command":"npx","args":["server"],"disabled":true}`:                "mcpServers.x is disabled in this configuration: remove `disabled` to install it",
	} {
		if _, err := ParseServer("x", json.RawMessage(definition), nil); core.CodeOf(err) != core.CodeBadRequest || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s gives %v", definition, err)
		}
	}
}

func TestAnInvalidDefinitionIsRefused(t *testing.T) {
	for _, definition := range []string{`{}`, `5`, `{"command":"x","url":"https://a.test"}`, `{"url":"https://a.test","type":"websocket"}`} {
		if r, err := ParseServer("x", json.RawMessage(definition), nil); core.CodeOf(err) != core.CodeBadRequest {
			t.Errorf("%s gives %+v (%v)", definition, r, err)
		}
	}
	for _, r := range []Request{{Command: "npx", Args: []string{"-y"}}, {Command: "/usr/bin/uvx"}, {NPM: "--prefix=/"}, {NPM: "a@../b"}, {NPM: "a@--x"}, {PyPI: "--target=/"}, {PyPI: "a@git+https://x"}, {PyPI: "a[--x]"}, {PyPI: "a[x"}, {NPM: "a[x]"}, {NPM: "a", Bin: "../b"}, {NPM: "a", Bin: "-b"}, {Command: "a", Bin: "b"}, {NPM: "a", PyPI: "b"}} {
		if o, err := r.Order("ws_default"); core.CodeOf(err) != core.CodeBadRequest {
			t.Errorf("%+v gives %+v (%v)", r, o, err)
		}
	}
}

func TestThePyPICommandIsTheOnlyConsoleScriptWhenNoneHasTheProjectsName(t *testing.T) {
	venv := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(venv, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	site := "lib/python3.11/site-packages/"
	write(site+"other-1.0.dist-info/entry_points.txt", "[console_scripts]\nother = other:main\n")
	if script, err := consoleScript(venv, "My.Server", ""); err == nil {
		t.Errorf("a project without a command has %s", script)
	}
	write(site+"my_server-1.0.dist-info/entry_points.txt", "[gui_scripts]\nwindow = a:b\n\n[console_scripts]\nserve-mine = my:main\n")
	if script, err := consoleScript(venv, "My.Server", ""); err != nil || script != "serve-mine" {
		t.Errorf("the command is %q (%v)", script, err)
	}
	write(site+"my_server-1.0.dist-info/entry_points.txt", "[console_scripts]\na = my:main\nb = my:main\n")
	if _, err := consoleScript(venv, "My.Server", ""); err == nil || !strings.Contains(err.Error(), "(a, b)") {
		t.Errorf("several commands give %v", err)
	}
	if script, err := consoleScript(venv, "My.Server", "b"); err != nil || script != "b" {
		t.Errorf("the requested command is %q (%v)", script, err)
	}
	if _, err := consoleScript(venv, "My.Server", "c"); err == nil || !strings.Contains(err.Error(), "no command \"c\"; it has a, b") {
		t.Errorf("an unknown command returned %v", err)
	}
	write(site+"my_server-1.0.dist-info/entry_points.txt", "[console_scripts]\na = my:main\nmy_server = my:main\n")
	if script, err := consoleScript(venv, "My.Server", ""); err != nil || script != "my_server" {
		t.Errorf("the command with the project's name, spelled differently, is %q (%v)", script, err)
	}
	write("bin/My.Server", "")
	if script, err := consoleScript(venv, "My.Server", ""); err != nil || script != "My.Server" {
		t.Errorf("the command is %q (%v)", script, err)
	}
}

func TestWhoeverNamesThePackageMaySetAnyOfItsVariables(t *testing.T) {
	order := Order{Source: core.Source{Kind: core.SourceNPM, Ref: "x"}, Env: map[string]core.Secret{"LAUNCH_OPTIONS": "{}", "API_KEY": "k"}}
	c, err := (&Resolver{}).fromNPM(order, directPackage(order, registry.KindNPM, "1.0.0"))
	if err != nil {
		t.Fatal(err)
	}
	launch, err := c.Manifest.Launch(bundle.LaunchInput{Values: order.Env, Lookup: func(name string) (string, error) { return "/bin/" + name, nil }})
	if err != nil || launch.Variables()["LAUNCH_OPTIONS"] != "{}" || launch.Variables()["API_KEY"] != "k" {
		t.Errorf("it is started with %v (%v)", launch.Variables(), err)
	}
	for _, name := range []string{"LD_PRELOAD", "NODE_OPTIONS", "X-Y"} {
		order.Env = map[string]core.Secret{name: "x"}
		if c, err := (&Resolver{}).fromNPM(order, directPackage(order, registry.KindNPM, "1.0.0")); err != nil || c.CheckValues() == nil {
			t.Errorf("%s may be set (%v)", name, err)
		}
	}
}
