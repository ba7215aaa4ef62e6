// Package conformance runs the official MCP conformance suite against /mcp, with the Go SDK's everything-server
// installed as an app. It runs every scenario that the two newest revisions require. It also runs the suite's scenarios
// for clients. In those, the suite's server is a remote app, and an account is linked for it if the scenario is about
// authorization.
//
// The extensions for tasks and skills also have oracles outside the suite: the official client for tasks
// (@modelcontextprotocol/ext-tasks) calls an app's tools and continues after the server was killed, and the Inspector
// verifies the digests, sizes and front matter of all skills.
//
// The suite does not know about workspaces or prefixed names. A small proxy in front of /mcp adds the header
// X-Workspace-Id, adds the app's prefix to the names that the suite sends, and removes it from the names that
// the suite receives. It changes nothing else.
//
// The suite requires Node 22 or newer, which package.json installs (Linux on x64).
package conformance
