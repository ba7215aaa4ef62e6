package core

// Mirror is an argument of a tool that requests of MCP 2026-07-28 repeat in an HTTP header, for those
// who route them: the tool's input schema marks it with x-mcp-header.
type Mirror struct {
	Header string   // what follows Mcp-Param- in the header's name
	Path   []string // the members that lead from the arguments to it, one at least
}
