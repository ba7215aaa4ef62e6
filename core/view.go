package core

// View is a named subset of a workspace's tools: it says which tools are shown, and under which names.
type View struct {
	Name    string             `json:"name"`
	Default ViewDefault        `json:"default"` // what happens to a tool that no rule matches
	Include []ToolRule         `json:"include"`
	Exclude []ToolRule         `json:"exclude"` // wins over Include
	Tools   map[string]Relabel `json:"tools"`   // how individual tools are presented, by full name
}

// ViewDefault says what a view does with a tool that no rule matches.
type ViewDefault string

// The defaults.
const (
	ViewAllows ViewDefault = "allow"
	ViewDenies ViewDefault = "deny"
)

// ToolRule matches the tools that meet all its conditions. In App and Tool, * matches any text. The annotations are
// the ones that the app claims, or MCP's defaults for a tool without annotations.
type ToolRule struct {
	App         string `json:"app,omitempty"`
	Tool        string `json:"tool,omitempty"` // a full name, such as files__read
	ReadOnly    *bool  `json:"readOnly,omitempty"`
	Destructive *bool  `json:"destructive,omitempty"`
	Idempotent  *bool  `json:"idempotent,omitempty"`
	OpenWorld   *bool  `json:"openWorld,omitempty"`
}

// Relabel says how a view presents a tool.
type Relabel struct {
	Name        string `json:"name,omitempty"` // replaces the tool's own name, after the app's prefix; "" keeps it
	Description string `json:"description,omitempty"`
}
