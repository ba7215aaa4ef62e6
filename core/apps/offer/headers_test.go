package offer

import (
	"encoding/json"
	"testing"

	"github.com/hashicorp/go-hclog"
)

func TestAToolWithInvalidHeaderMarksIsNotCalledOverHTTP(t *testing.T) {
	raws := []json.RawMessage{
		json.RawMessage(`{"name":"good","inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}`),
		json.RawMessage(`{"name":"bad","inputSchema":{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}}`),
	}
	local := Reader{Server: "notes", Logger: hclog.NewNullLogger()}.parseTools(raws)
	remote := Reader{Server: "notes", Headers: true, Logger: hclog.NewNullLogger()}.parseTools(raws)
	if len(local) != 2 || len(local[0].Mirrors) != 1 || local[1].Mirrors != nil {
		t.Errorf("a tool of a process: %v", local)
	}
	if len(remote) != 1 || remote[0].Name != "good" {
		t.Errorf("a tool of a remote server: %v", remote)
	}
}
