package core

// View is a named subset of a workspace's tools. It specifies which tools are shown, and under which names.
type View struct {
	Name    string             `json:"name"`
	Default ViewDefault        `json:"default"` // what happens to a tool that no rule matches
	Include []ToolRule         `json:"include"`
	Exclude []ToolRule         `json:"exclude"` // takes precedence over Include
	Tools   map[string]Relabel `json:"tools"`   // how individual tools are presented, by full name

	// Surface is how tools are listed to clients of the view that do not choose: full or search; "" leaves it open.
	Surface string `json:"surface,omitempty"`

	// Roles and Groups bind the view to members of the workspace with one of these workspace roles, or in one of
	// these groups of their identity provider. These members see nothing else, whichever address and key they use.
	Roles  []Role   `json:"roles"`
	Groups []string `json:"groups"`
}

// ViewDefault is what a view does with a tool that no rule matches.
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

// Relabel specifies how a view presents a tool.
type Relabel struct {
	Name        string `json:"name,omitempty"` // replaces the tool's own name, after the app's prefix; "" keeps it
	Description string `json:"description,omitempty"`
}

// The surfaces: how tools are listed to a client. On both, a caller can call every tool that it may see by name.
const (
	SurfaceFull   = "full"   // all tools
	SurfaceSearch = "search" // the tools that find and call the others, and the favourites
)

// CheckSurface returns an error with CodeBadRequest if a field holds something other than a surface or "".
func CheckSurface(field, surface string) error {
	if surface == "" || surface == SurfaceFull || surface == SurfaceSearch {
		return nil
	}
	return Errorf(CodeBadRequest, "%s is %.50q; it must be %s or %s", field, surface, SurfaceFull, SurfaceSearch)
}
