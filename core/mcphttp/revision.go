package mcphttp

import "slices"

// The headers of the Streamable HTTP transport.
const (
	headerSession  = "Mcp-Session-Id"
	headerProtocol = "Mcp-Protocol-Version"
)

// statelessRevision is the protocol revision without sessions. What a session would keep travels with
// every request, in its _meta.
const statelessRevision = "2026-07-28"

// metaLogLevel names the least severe log messages that a request wants to see.
const metaLogLevel = "io.modelcontextprotocol/logLevel"

// revisions are the protocol revisions that have sessions, newest first.
func revisions() []string { return []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"} }

func hasSessions(revision string) bool { return slices.Contains(revisions(), revision) }

// supported are all revisions that this endpoint speaks, newest first.
func supported() []string { return append([]string{statelessRevision}, revisions()...) }
