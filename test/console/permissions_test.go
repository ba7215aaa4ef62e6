package console

import (
	"os"
	"path/filepath"
	"testing"
)

// On an app's page, a person allows the app to use a service on this machine, sees that the permission works, and
// revokes it.
func TestAnAppsPermissionsAreDecidedOnItsPage(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.Object(t, "POST", "/v1/apps/install", map[string]any{"path": unpacked(t, greeter(t, "porter", "Porter", nil, nil))})
	browse(t, "permissions.mjs", s, nil)
}

// script is an MCP server that starts only if it can read the file next to it.
const script = `import json, sys
from helper import tool
for line in sys.stdin:
    m = json.loads(line)
    result = {"tools": [tool]}
    if m.get("method") == "initialize":
        result = {"protocolVersion": m["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "mine", "version": "1"}}
    if "id" in m:
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": result}), flush=True)
`

// A person pastes the definition of a server that runs a script and connects to a service on this machine. The console
// asks for both permissions before it installs the server.
func TestTheConsoleAsksForPermissionsBeforeItInstalls(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("/tmp", "demo-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for name, text := range map[string]string{"own.py": script, "helper.py": `tool = {"name": "greet", "inputSchema": {"type": "object"}}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil { //nolint:gosec // an app that runs as another user reads the file
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // an app that runs as another user opens the directory
		t.Fatal(err)
	}
	browse(t, "questions.mjs", serve(t, ""), map[string]any{"dir": dir})
}
