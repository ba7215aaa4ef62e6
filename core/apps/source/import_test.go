package source

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/pasted"
	"github.com/ropewalk/ropewalk/core/bundle"
)

func TestTheHomeInAPastedDefinitionIsTheServersHome(t *testing.T) {
	for _, home := range []string{"~", "$HOME", "${HOME}", "${env:HOME}", "${userHome}"} {
		definition, err := json.Marshal(map[string]any{"command": "npx", "args": []string{"-y", "a", home + "/notes", "--root=" + home + "/x", "a~b"}, "env": map[string]string{"FILE": home + "/f"}})
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := ParseServer("x", definition, map[string]core.Secret{"HOME": "/home/ana"})
		if got := strings.Join(parsed.Request.Args[2:], " ") + " " + parsed.Request.Env["FILE"].Reveal(); err != nil || got != "/home/ana/notes --root=/home/ana/x a~b /home/ana/f" || len(parsed.Inputs) != 0 {
			t.Errorf("%s: %s, asks %v (%v)", home, got, parsed.Inputs, err)
		}
	}
}

func TestAPastedPathOfAScriptNamesItsCommand(t *testing.T) {
	for path, says := range map[string]string{"/home/ana/hello.py\n": "python3 /home/ana/hello.py", "~/server.mjs": "node ~/server.mjs", "/home/ana/hello": "text"} {
		_, err := ImportRequest{Text: path}.Servers()
		if err == nil || strings.Contains(err.Error(), "paste its command: ") != (says != "text") || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// TestPastedConfigurationsOfAllClientsAreParsed reads the files in test/pasted and compares how each
// server would be installed with wanted.json.
func TestPastedConfigurationsOfAllClientsAreParsed(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "test", "pasted")
	raw, err := os.ReadFile(filepath.Join(dir, "wanted.json"))
	if err != nil {
		t.Fatal(err)
	}
	var wanted map[string][]string
	if err := json.Unmarshal(raw, &wanted); err != nil {
		t.Fatal(err)
	}
	for _, file := range slices.Sorted(maps.Keys(wanted)) {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		servers, err := ImportRequest{Text: string(text)}.Servers()
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		var got []string
		for _, name := range slices.Sorted(maps.Keys(servers)) {
			got = append(got, name+": "+describe(t, name, servers[name]))
		}
		if !slices.EqualFunc(got, wanted[file], isAsWanted) {
			t.Errorf("%s gives\n  %s\nwant\n  %s", file, strings.Join(got, "\n  "), strings.Join(wanted[file], "\n  "))
		}
	}
}

// isAsWanted compares a line. For an error, it only checks that the wanted words appear in the line.
func isAsWanted(got, want string) bool {
	place, words, ok := strings.Cut(want, ": error ")
	if !ok {
		return got == want
	}
	return strings.HasPrefix(got, place+": error ") && strings.Contains(got, words)
}

// describe returns a line that says how a server would be installed. The value of each input is its name in <>.
func describe(t *testing.T, name string, definition json.RawMessage) string {
	t.Helper()
	parsed, err := ParseServer(name, definition, nil)
	values := map[string]core.Secret{}
	for _, in := range parsed.Inputs {
		values[in.Name] = core.Secret("<" + in.Name + ">")
	}
	if err != nil && core.CodeOf(err) != core.CodeCredentialsRequired {
		return "error " + err.Error()
	}
	if parsed, err = ParseServer(name, definition, values); err != nil {
		return "error " + err.Error()
	}
	o, err := parsed.Request.Order("ws_default")
	if err != nil {
		return "error " + err.Error()
	}
	var line strings.Builder
	line.WriteString(string(o.Source.Kind) + " " + o.Source.Ref)
	if o.Version != "" {
		line.WriteString("@" + o.Version)
	}
	if o.Remote == nil {
		fmt.Fprintf(&line, " %v", o.Args)
		if o.Dir != "" {
			line.WriteString(" in " + o.Dir)
		}
	} else if line.WriteString(" " + o.Remote.Type); o.TrySSE {
		return strings.TrimSuffix(line.String(), o.Remote.Type) + "any" + rest(o, parsed)
	}
	return line.String() + rest(o, parsed)
}

func rest(o Order, parsed ParsedServer) string {
	var line strings.Builder
	write := func(label string, values map[string]core.Secret) {
		for i, key := range slices.Sorted(maps.Keys(values)) {
			if i == 0 {
				line.WriteString(" " + label)
			}
			line.WriteString(" " + key + "=" + values[key].Reveal())
		}
	}
	write("env", o.Env)
	if o.Remote != nil {
		write("header", o.Remote.Headers)
	}
	for i, in := range parsed.Inputs {
		if i == 0 {
			line.WriteString("; asks")
		}
		line.WriteString(" " + in.Name)
		if in.Default != "" {
			line.WriteString(" (" + in.Default + ")")
		}
	}
	if o.Tools != nil {
		line.WriteString("; tools " + strings.Join(o.Tools.Include, " ") + " without " + strings.Join(o.Tools.Exclude, " "))
	}
	if len(parsed.Left) > 0 {
		line.WriteString("; leaves " + strings.Join(parsed.Left, " "))
	}
	return line.String()
}

func TestPlaceholdersArePromptedForAndNeverStoredAsText(t *testing.T) {
	for written, want := range map[string]string{
		"$TOKEN": "TOKEN", "${TOKEN}": "TOKEN", "${input:api-key}": "api-key", "${env:TOKEN}": "TOKEN", "{env:TOKEN}": "TOKEN", "${{ secrets.TOKEN }}": "TOKEN",
		"Bearer $TOKEN": "TOKEN", "%TOKEN%": "TOKEN", "$token": "token", "${TOKEN:?give it}": "TOKEN", "--key=$TOKEN": "TOKEN", "a-${A}-${B}": "A B",
		"${TOKEN:-dev}": "TOKEN=dev", "${TOKEN-dev}": "TOKEN=dev", "${env:TOKEN:-dev}": "TOKEN=dev", "${env:TOKEN:dev}": "TOKEN=dev",
		"pa$$word": "", "US$5": "", "100%": "", "{name}": "", "a$b": "",
	} {
		for _, definition := range []map[string]any{
			{"command": "run", "env": map[string]any{"API_KEY": written}}, {"command": "run", "args": []any{written}}, {"url": "https://a.test", "headers": map[string]any{"X-Key": written}},
		} {
			raw, err := json.Marshal(definition)
			if err != nil {
				t.Fatal(err)
			}
			parsed, _ := ParseServer("x", raw, nil)
			var asked []string
			values := map[string]core.Secret{}
			for _, in := range parsed.Inputs {
				values[in.Name] = "given"
				name := in.Name
				if in.Default != "" {
					name += "=" + in.Default
				}
				asked = append(asked, name)
			}
			if strings.Join(asked, " ") != want {
				t.Errorf("%s asks for %v, want %s", raw, asked, want)
			}
			parsed, err = ParseServer("x", raw, values)
			if err != nil {
				t.Errorf("%s with values: %v", raw, err)
				continue
			}
			text := parsed.Request.Env["API_KEY"].Reveal() + strings.Join(parsed.Request.Args, " ")
			if parsed.Request.Transport != nil {
				text += parsed.Request.Transport.Headers["X-Key"].Reveal()
			}
			if kept := strings.Contains(text, written); kept != (want == "") {
				t.Errorf("%s with values is %q", raw, text)
			}
		}
	}
}

func TestAnInlineProgramIsNotSearchedForPlaceholders(t *testing.T) {
	for _, definition := range []string{
		`{"command":"node","args":["-e","console.log(` + "`${about} $x`" + `)"]}`, `{"command":"/usr/bin/python3.12","args":["-c","print(f'{a} $b')"]}`,
	} {
		parsed, err := ParseServer("x", json.RawMessage(definition), nil)
		if err != nil || len(parsed.Inputs) > 0 || !strings.Contains(definition, parsed.Request.Args[1]) {
			t.Errorf("%s asks for %v and gives %q, %v", definition, parsed.Inputs, parsed.Request.Args, err)
		}
	}
}

func TestAPastedToolFilterBecomesTheAppsFilter(t *testing.T) {
	parse := func(field string) (string, error) {
		parsed, err := ParseServer("x", json.RawMessage(`{"command":"npx","args":["-y","a"],`+field+`}`), nil)
		o, other := parsed.Request.Order("ws_default")
		if err != nil || o.Tools == nil {
			return "all", err
		}
		return strings.Join(o.Tools.Include, " ") + " without " + strings.Join(o.Tools.Exclude, " "), other
	}
	for _, key := range []string{"includeTools", "include_tools", "enabledTools", "enabled_tools", "allowedTools", "allowed_tools", "allowed-tools", "available_tools", "tools"} {
		if got, err := parse(`"` + key + `":["one","two_*"]`); err != nil || got != "one two_* without " {
			t.Errorf("%s gives %s, %v", key, got, err)
		}
	}
	for _, key := range []string{"excludeTools", "disabledTools", "disabled_tools", "blockedTools", "deniedTools"} {
		if got, err := parse(`"` + key + `":["one"]`); err != nil || got != " without one" {
			t.Errorf("%s gives %s, %v", key, got, err)
		}
	}
	for field, want := range map[string]string{
		`"tools":["*"]`: "all", `"tools":"*"`: "all", `"disabledTools":[]`: "all", `"available_tools":[]`: "all", `"tool_timeout_sec":5`: "all", `"autoApproveTools":["a"]`: "all",
		`"tools":true`: "all", `"tools":{}`: "all", `"disabledTools":false`: "all", `"includeTools":null`: "all",
		`"tools":false`: " without *", `"disabledTools":true`: " without *", `"includeTools":"one, two"`: "one two without ",
		`"tools":{"delete":false,"read":true,"*_all":"deny"}`: " without *_all delete", `"tools":{"delete":{"disabled":true},"read":{"approval":"ask"}}`: " without delete",
		`"disabledTools":{"delete":true,"read":false}`: " without delete", `"toolFilter":{"include":["a","b"],"exclude":["b"]}`: "a b without b",
		`"enabledTools":{"read":true,"delete":false}`:                     "read without delete",
		`"includeTools":["a"],"excludeTools":["b"],"blocked_tools":["c"]`: "a without c b",
	} {
		if got, err := parse(field); err != nil || got != want {
			t.Errorf("%s gives %q, %v, want %q", field, got, err, want)
		}
	}
	for field, want := range map[string]string{
		`"includeTools":[]`: "includeTools is empty", `"tools":[{"name":"a"}]`: "tools[0]", `"tools":{"a":7}`: "tools.a does not say", `"enabledTools":["a"],"allowedTools":["b"]`: "another field already",
		`"disabledTools":["a\nb"]`: "other than the name", `"disabledTools":[""]`: "other than the name",
	} {
		if got, err := parse(field); core.CodeOf(err) != core.CodeBadRequest || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gives %s, %v", field, got, err)
		}
	}
}

func TestTextThatIsNotAConfigurationIsRefusedWithAHint(t *testing.T) {
	for text, want := range map[string]string{
		"": "empty", "{": "not JSON", "{}": "it does not name a server", "[]": "it does not name a server", "please install it": "it does not name a server", "npx -y a\nand then restart": "line 2 is neither a command", `{"mcpServers": {}}`: "it does not name a server",
		"a: [": "neither JSON nor valid TOML or YAML", "[a]\nb = ": "neither JSON nor valid TOML or YAML",
		`{"a": {"mcpServers": {"x": {"command": "a"}}}, "b": {"mcpServers": {"x": {"command": "b"}}}}`: "defines x more than once",
		"{\"mcpServers\": {\n\"x\": {\"command\": \"a\"},\n\"x\": {\"command\": \"b\"}}}":              `"x" is given twice with different values, on line 2 and line 3`,
		`"x": {"command": "a", "env": {"A": "1", "A": "2"}}`:                                           `"A" is given twice`,
		`{"mcpServers": {"x": {"command": "a"}}, "mcpServers": {"y": {"command": "b"}}}`:               `"mcpServers" is given twice`,
		"{\"x\": {\n\"command\": \"a\"\n":                                                              "unexpected EOF; the end is missing", `{"x": {"command": "C:\Program Files\x.exe"}}`: "each backslash in a path must be doubled",
		"\"x\": {\n  \"command\" \"npx\"}": "line 2, column 13", "[mcp_servers.x]\ncommand = \"npx": "line 2, column ",
		"npx -y a\nnpx -y \\\n b\nmcp list": "line 4 is neither a command", `[{"command": "a"}, {"command": "b"}]`: "have no name",
	} {
		if servers, err := pasted.Servers([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v (%v)", text, servers, err)
		}
	}
}

func TestGivenValuesAreNotSearchedForPlaceholders(t *testing.T) {
	definition := json.RawMessage(`{"command":"run","args":["--key=$KEY","~/x"],"env":{"API_KEY":"${KEY}"}}`)
	for _, value := range []string{"$ecret", "a $B c", "%PATH%", "~/secret", "${X}", "<mine>"} {
		parsed, err := ParseServer("x", definition, map[string]core.Secret{"KEY": core.Secret(value), "HOME": "/home/ana"})
		if err != nil || len(parsed.Inputs) != 1 || parsed.Request.Env["API_KEY"].Reveal() != value || !slices.Equal(parsed.Request.Args, []string{"--key=" + value, "/home/ana/x"}) {
			t.Errorf("%s becomes %q and %q, asks %v (%v)", value, parsed.Request.Env["API_KEY"].Reveal(), parsed.Request.Args, parsed.Inputs, err)
		}
	}
}

func TestSecretsInTheArgumentsOfAPastedDefinitionAreKeptAsSecrets(t *testing.T) {
	definition := json.RawMessage(`{"command":"cat","args":["--token","${TOKEN}","--auth=${AUTH}","--path","$PATH","--level=${LEVEL:-low}"],"env":{"AUTH":"Bearer own"}}`)
	parsed, err := ParseServer("x", definition, map[string]core.Secret{"TOKEN": "given", "PATH": "/given"})
	if err != nil {
		t.Fatal(err)
	}
	o, err := parsed.Request.Order("ws_default")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(o.ShownArgs(), " "); got != "--token ${TOKEN} --auth=${AUTH} --path ${PATH} --level=low" {
		t.Errorf("it shows %s", got)
	}
	r := &Resolver{HostEnv: map[string]string{"PATH": "/usr/bin:/bin"}}
	found, err := r.Resolve(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if raw := string(found.Record.Manifest); strings.Contains(raw, "given") || strings.Contains(raw, "Bearer") {
		t.Errorf("the manifest is %s", raw)
	}
	if err := found.CheckValues(); err != nil {
		t.Error(err)
	}
	launch, err := found.Manifest.Launch(bundle.LaunchInput{Values: found.Record.Env, Lookup: bundle.Lookup("/usr/bin:/bin")})
	if want := []string{"--token", "given", "--auth=Bearer own", "--path", "/given", "--level=low"}; err != nil || !slices.Equal(launch.Args, want) || !slices.Equal(launch.Env, []string{"AUTH=Bearer own"}) {
		t.Errorf("it starts with %q and %q (%v)", launch.Args, launch.Env, err)
	}
}
