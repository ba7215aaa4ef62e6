package apps

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/link"
)

// fullName is what a tool may be called, its server's prefix included (contract part 7).
var fullName = regexp.MustCompile(`^[A-Za-z0-9_./-]{1,64}$`)

// rereadPause is the least time between two readings of an app's tools, so that an app that
// announces changes without end costs little. The first announcement is followed at once.
const rereadPause = 100 * time.Millisecond

// methodNotFound is what an app without tools answers to tools/list (JSON-RPC 2.0, 5.1).
const methodNotFound = -32601

// readTools reads the tools of a running app again and shows them when they differ.
func (a *app) readTools(ctx context.Context, conn instance) {
	limit, cancel := context.WithTimeout(ctx, a.yard.o.StartTimeout)
	defer cancel()
	tools, err := listTools(limit, conn, a.key.name, a.log)
	if err != nil {
		a.log.Warn("An app said that its tools changed, but did not list them; the old list stays.", "error", err)
	} else if !slices.EqualFunc(tools, a.now.Load().tools, sameTool) {
		a.become(same, func(v *view) { v.setTools(tools) })
	}
}

// listTools asks an app for its tools. An app that knows no tools/list has none.
func listTools(ctx context.Context, conn instance, server string, log hclog.Logger) ([]core.Tool, error) {
	raws, err := conn.Tools(ctx)
	if rpc, ok := errors.AsType[*link.RPCError](err); ok && rpc.Code == methodNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseTools(raws, server, log), nil
}

// parseTools keeps the order of raws. What cannot be called is left out, each with a log line:
// what is no object with a name, a name given twice, and a name that does not fit.
func parseTools(raws []json.RawMessage, server string, log hclog.Logger) []core.Tool {
	tools := make([]core.Tool, 0, len(raws))
	seen := make(map[string]bool, len(raws))
	for _, raw := range raws {
		t, err := parseTool(raw, server)
		switch {
		case err != nil:
			log.Warn("A tool is left out: it is not an object with a name.", "error", err)
		case !fullName.MatchString(t.FullName()):
			log.Warn("A tool is left out: its name with the app's prefix must be 1 to 64 of the characters A-Z a-z 0-9 _ . / -.", "tool", t.Name)
		case seen[t.Name]:
			log.Warn("A tool is left out: the app lists another one of this name before it.", "tool", t.Name)
		default:
			seen[t.Name] = true
			tools = append(tools, t)
		}
	}
	return tools
}

func parseTool(raw json.RawMessage, server string) (core.Tool, error) {
	var said struct {
		Name        string          `json:"name"`
		InputSchema json.RawMessage `json:"inputSchema"`
	}
	if err := json.Unmarshal(raw, &said); err != nil {
		return core.Tool{}, err
	}
	if said.Name == "" {
		return core.Tool{}, errors.New("name is missing")
	}
	return core.Tool{
		Server: server, Name: said.Name, Raw: raw, Schema: said.InputSchema,
		ReadOnly: readOnlyHint(raw), ViewURI: viewURI(raw),
	}, nil
}

// readOnlyHint and viewURI read hints: one that is malformed counts as absent, the tool stays.
func readOnlyHint(raw json.RawMessage) bool {
	var said struct {
		Annotations struct {
			ReadOnlyHint bool `json:"readOnlyHint"`
		} `json:"annotations"`
	}
	return json.Unmarshal(raw, &said) == nil && said.Annotations.ReadOnlyHint
}

func viewURI(raw json.RawMessage) string {
	var said struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	if json.Unmarshal(raw, &said) != nil {
		return ""
	}
	var ui struct {
		ResourceURI string `json:"resourceUri"`
	}
	if json.Unmarshal(said.Meta["ui"], &ui) == nil && ui.ResourceURI != "" {
		return ui.ResourceURI
	}
	var flat string // the older key of MCP Apps
	if json.Unmarshal(said.Meta["ui/resourceUri"], &flat) != nil {
		return ""
	}
	return flat
}

func sameTool(a, b core.Tool) bool {
	return a.Server == b.Server && a.Name == b.Name && bytes.Equal(a.Raw, b.Raw)
}
