package offer

import (
	"encoding/json"

	"github.com/ropewalk/ropewalk/core/rawjson"
)

// readOnlyHint reads annotations.readOnlyHint. A malformed hint counts as absent.
func readOnlyHint(raw json.RawMessage) bool {
	var tool struct {
		Annotations struct {
			ReadOnlyHint bool `json:"readOnlyHint"`
		} `json:"annotations"`
	}
	return json.Unmarshal(raw, &tool) == nil && tool.Annotations.ReadOnlyHint
}

// viewURI reads the URI of the view (MCP Apps) that shows the results of a tool, "" without one.
func viewURI(raw json.RawMessage) string {
	var tool struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	if json.Unmarshal(raw, &tool) != nil {
		return ""
	}
	var ui struct {
		ResourceURI string `json:"resourceUri"`
	}
	if json.Unmarshal(tool.Meta["ui"], &ui) == nil && ui.ResourceURI != "" {
		return ui.ResourceURI
	}
	var flat string // the older key of MCP Apps
	if json.Unmarshal(tool.Meta["ui/resourceUri"], &flat) != nil {
		return ""
	}
	return flat
}

// taskOnly reports whether a tool can only be called as a task (MCP 2025-11-25). A value of another form
// means nothing.
func taskOnly(execution json.RawMessage) bool {
	var x struct {
		TaskSupport string `json:"taskSupport"`
	}
	return len(execution) > 0 && json.Unmarshal(execution, &x) == nil && x.TaskSupport == "required"
}

// withoutTaskSupport returns a tool that clients call like every other: the server runs the task, and
// clients refuse to call a tool that requires one of them.
func withoutTaskSupport(raw json.RawMessage) json.RawMessage {
	edited, err := rawjson.EditMember(raw, "execution", func(execution json.RawMessage) (json.RawMessage, error) {
		return rawjson.Without(execution, "taskSupport")
	})
	if err != nil {
		return raw
	}
	return edited
}
