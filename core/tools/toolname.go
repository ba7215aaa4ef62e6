package tools

import (
	"encoding/json"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rawjson"
)

// metaOriginalName is the member of a tool's _meta with the name that its app gave it, where the name in
// the workspace is shortened.
const metaOriginalName = "ropewalk/originalName"

// withOriginalName adds the original name to the description of a tool whose name is shortened.
func withOriginalName(t core.Tool, raw json.RawMessage) (json.RawMessage, error) {
	if t.FullName() == t.LongName() {
		return raw, nil
	}
	at, err := rawjson.Find(raw, "_meta")
	if err != nil {
		return nil, err
	}
	meta := json.RawMessage("{}")
	if !at.Empty() && raw[at.From] == '{' {
		meta = at.In(raw)
	}
	meta, err = rawjson.Set(meta, rawjson.Member{Name: metaOriginalName, Value: rawjson.Quote(t.Name)})
	if err != nil {
		return nil, err
	}
	return rawjson.Set(raw, rawjson.Member{Name: "_meta", Value: meta})
}

// tool finds a tool by its name in the workspace, or by its app's own name for it, which views of MCP Apps
// use. An app's own name is accepted when only one app has it, or only one of those whose views the session
// has read. It is nil when there is no such tool.
func (r *mergedLists) tool(name string, s *Session) *callable {
	if tool := r.byName[name]; tool != nil {
		return tool
	}
	candidates := r.bare[name]
	if len(candidates) == 1 {
		return candidates[0]
	}
	var found *callable
	for _, tool := range candidates {
		if s == nil || !s.viewed(tool.Server) {
			continue
		}
		if found != nil {
			return nil
		}
		found = tool
	}
	return found
}
