package source

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestAProjectThatUsesTheOldSDKIsRecognized(t *testing.T) {
	for _, c := range []struct {
		name, sdk, code string
		want            bool
	}{
		{"FastMCP", "2.3.0", "from mcp.server.fastmcp import FastMCP\n", true},
		{"a decorator for requests", "2.3.0", "server = Server('x')\n\n    @server.list_tools()\n    async def list(): ...\n", true},
		{"the new API", "2.3.0", "from mcp.server.mcpserver import MCPServer\n@mcp.tool()\ndef x(): ...\nclient.list_tools()\n", false},
		{"the old SDK", "1.30.0", "from mcp.server.fastmcp import FastMCP\n", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			venv := t.TempDir()
			site := filepath.Join(venv, "lib", "python3.11", "site-packages")
			for file, text := range map[string]string{
				"mcp-" + c.sdk + ".dist-info/RECORD": "mcp/server.py,,\n", "mcp/server.py": "from mcp.server.fastmcp import FastMCP\n",
				"my_server-1.0.dist-info/RECORD": "my_server/__init__.py,sha256=x,1\nmy_server/logo.png,,\n", "my_server/__init__.py": c.code,
			} {
				at := filepath.Join(site, file)
				if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(text), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			if got := needsOldSDK(venv, "my-server"); got != c.want {
				t.Errorf("needs the old SDK: %v", got)
			}
		})
	}
}
