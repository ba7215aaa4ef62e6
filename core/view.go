package core

// View is a named part of the tools of a workspace: which of them it shows, and under which names.
type View struct {
	Name    string             `json:"name"`
	Default ViewDefault        `json:"default"` // what is done with a tool that no rule names
	Include []ToolRule         `json:"include"`
	Exclude []ToolRule         `json:"exclude"` // wins over Include
	Tools   map[string]Relabel `json:"tools"`   // how single tools are presented, by their full name
}

// ViewDefault is what a view does with a tool that no rule names.
type ViewDefault string

// The defaults.
const (
	ViewAllows ViewDefault = "allow"
	ViewDenies ViewDefault = "deny"
)

// ToolRule names tools: those that everything in it fits. In App and Tool, * matches any text. The annotations are those
// that the app claims, or the defaults of MCP for a tool that claims none.
type ToolRule struct {
	App         string `json:"app,omitempty"`
	Tool        string `json:"tool,omitempty"` // a full name, such as files__read
	ReadOnly    *bool  `json:"readOnly,omitempty"`
	Destructive *bool  `json:"destructive,omitempty"`
	Idempotent  *bool  `json:"idempotent,omitempty"`
	OpenWorld   *bool  `json:"openWorld,omitempty"`
}

// Relabel is how a view presents a tool.
type Relabel struct {
	Name        string `json:"name,omitempty"` // instead of the tool's own, behind the name of its app; "" keeps it
	Description string `json:"description,omitempty"`
}
