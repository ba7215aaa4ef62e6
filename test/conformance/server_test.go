package conformance

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// install installs the everything-server as a bundle.
func install(t *testing.T, s *harness.Server) {
	t.Helper()
	dir := harness.Bundle(t, map[string]any{
		"name": app, "version": "1.8.0", "description": "The Go SDK's conformance server.", "author": map[string]any{"name": "The Go MCP SDK Authors"},
		"server": map[string]any{"type": "binary", "entry_point": "server", "mcp_config": map[string]any{"command": "${__dirname}/server", "args": []string{}}},
	})
	program, err := os.ReadFile(testenv.Executable(t, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "server"), program, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.Install(t, map[string]any{"path": dir})
}
