// Package conformance runs the official MCP conformance suite against /mcp. The Go SDK's everything-server is installed
// as an app. The package runs every scenario that the two newest revisions require. It also runs the suite's scenarios
// for clients, with the suite's server as a remote app. For scenarios about authorization, it links an account for that
// app.
//
// Two other programs check the extensions for tasks and skills. The official client for tasks
// (@modelcontextprotocol/ext-tasks) calls an app's tools and continues after the server has crashed. The Inspector
// verifies the digests, sizes and front matter of all skills.
//
// The suite does not know about workspaces or prefixed names. A small proxy in front of /mcp sets the header
// X-Workspace-Id, adds the app's prefix to names in requests, and removes the prefix from names in responses. The proxy
// changes nothing else.
//
// The suite requires Node 22 or newer, which is one of the packages in package.json (Linux on x64).
package conformance
