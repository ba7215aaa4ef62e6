package offer

import (
	"encoding/json"

	"github.com/ropewalk/ropewalk/core/rawjson"
)

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
