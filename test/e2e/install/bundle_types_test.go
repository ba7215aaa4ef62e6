package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// pythonServer is an MCP server that needs only Python's standard library.
const pythonServer = `import json, os, sys

def answer(request):
    method = request["method"]
    if method == "initialize":
        return {"protocolVersion": request["params"]["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "python", "version": "1.0.0"}}
    if method == "tools/list":
        return {"tools": [{"name": "greet", "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}]}
    if method == "tools/call":
        text = os.environ["GREETING"] + ", " + request["params"]["arguments"]["name"]
        return {"content": [{"type": "text", "text": text}]}
    return {}

print("this line is not a message")
for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": answer(request)}), flush=True)
`

// python writes a bundle with pythonServer. The greeting is a user_config value.
func python(t *testing.T, name, kind string, config map[string]any) string {
	t.Helper()
	server := map[string]any{"type": kind, "entry_point": "server.py"}
	if config != nil {
		server["mcp_config"] = config
	}
	dir := harness.Bundle(t, map[string]any{"name": "@e2e/" + name, "server": server, "user_config": map[string]any{
		"greeting": map[string]any{"type": "string", "title": "Greeting", "description": "The greeting that the tool returns.", "default": "Hello"},
	}})
	harness.WriteFile(t, filepath.Join(dir, "server.py"), pythonServer)
	harness.WriteFile(t, filepath.Join(dir, "pyproject.toml"), "[project]\nname = \"greeter\"\nversion = \"1.0.0\"\nrequires-python = \">=3.8\"\n")
	return dir
}

func TestEveryTypeOfBundleRuns(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	greeting := map[string]any{"GREETING": "${user_config.greeting}"}

	t.Run("python", func(t *testing.T) {
		dir := python(t, "snake", "python", map[string]any{"command": "python3", "args": []string{"${__dirname}/server.py"}, "env": greeting})
		s.Install(t, map[string]any{"path": dir, "env": map[string]any{"greeting": "Good day"}})
		if got := s.Call(t, "snake", "greet", map[string]any{"name": "Ada"}); got != "Good day, Ada" {
			t.Errorf("the tool returned %v", got)
		}
	})
	t.Run("uv", func(t *testing.T) {
		testenv.NeedsNamespaces(t) // uv writes to the bundle, so the bundle needs a writable layer
		if _, err := exec.LookPath("uv"); err != nil {
			t.Fatal("uv is missing; test/install-deps installs it")
		}
		dir := python(t, "adder", "uv", map[string]any{
			"command": "uv", "args": []string{"run", "--directory", "${__dirname}", "server.py"}, "env": greeting,
		})
		s.Install(t, map[string]any{"path": dir})
		if got := s.Call(t, "adder", "greet", map[string]any{"name": "Ada"}); got != "Hello, Ada" {
			t.Errorf("the tool returned %v", got)
		}
		if _, err := os.Stat(filepath.Join(dir, ".venv")); err == nil {
			t.Error("uv wrote its environment into the bundle")
		}
	})
	t.Run("binary", func(t *testing.T) {
		s.Install(t, map[string]any{"path": harness.GoBundle(t, "compiled", harness.Plain)})
		if got := s.Call(t, "compiled", "echo", map[string]any{"text": `{"a": [1, 2]}`}); harness.ToText(t, got) != `{"a":[1,2]}` {
			t.Errorf("JSON text was returned as %v", got)
		}
	})
}
