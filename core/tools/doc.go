// Package tools is the namespace that the HTTP API and the MCP endpoint share: the tools, prompts and resources of a
// workspace's apps.
//
// It merges the apps' lists (mergedlists.go), adds the app's prefix to tools and prompts, and finds the app for a name
// or URI (call.go, resourceuris.go). It applies feature flags, roles (docs/api.md 4.2) and views (package view), checks
// arguments against schemas (package schema), and searches tools (package ranking). It provides the server's own
// system__* tools, and publishes data.changed after an agent's call. It also keeps results that are too long
// (keptresults.go), and the subscriptions and the log level of a client session (session.go).
//
// It does not own connections, processes or apps' questions (package apps), or wire formats (packages httpapi and
// mcphttp). It is a separate package so that both endpoints list and allow the same things.
package tools
