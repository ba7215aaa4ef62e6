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
			venv := environment(t, map[string]string{
				"mcp-" + c.sdk + ".dist-info/RECORD": "mcp/server.py,,\n", "mcp/server.py": "from mcp.server.fastmcp import FastMCP\n",
				"my_server-1.0.dist-info/RECORD": "my_server/__init__.py,sha256=x,1\nmy_server/logo.png,,\n", "my_server/__init__.py": c.code,
			})
			if got := olderVersions(venv, "my-server"); (got == "mcp<2") != c.want {
				t.Errorf("needs an older version: %q", got)
			}
		})
	}
}

func TestAnSDKThatIsOlderThanItsPydanticIsRecognized(t *testing.T) {
	const imports, defines = "from pydantic._internal._typing_extra import eval_type_backport\n", "def eval_type_backport(value): ...\n"
	for _, c := range []struct{ name, sdk, pydantic, want string }{
		{"an old pydantic", imports, defines, ""},
		{"a new pydantic", imports, "def eval_type(value): ...\n", "pydantic<2.14"},
		{"a new SDK", "import pydantic\n", "def eval_type(value): ...\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			venv := environment(t, map[string]string{"mcp/server/fastmcp/utilities/func_metadata.py": c.sdk, "pydantic/_internal/_typing_extra.py": c.pydantic})
			if got := olderVersions(venv, "my-server"); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// environment returns a virtual environment with some files of packages.
func environment(t *testing.T, files map[string]string) string {
	t.Helper()
	venv := t.TempDir()
	for file, text := range files {
		at := filepath.Join(venv, "lib", "python3.11", "site-packages", file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return venv
}
