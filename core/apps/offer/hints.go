package offer

import "encoding/json"

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
