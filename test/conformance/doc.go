// Package conformance runs the official conformance suite of MCP against /mcp, in front of the Go
// SDK's everything-server installed as an app: every scenario that the two newest revisions require.
//
// The suite knows nothing of workspaces and of names with an app's prefix. A small shim of our own
// stands before /mcp: it adds the header X-Workspace-Id, puts the prefix before the names in what
// the suite sends, and takes it off what it gets. It changes nothing else.
//
// The suite needs Node 22 or newer, so package.json brings one along (Linux on x64).
package conformance
