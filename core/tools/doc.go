// Package tools is the namespace that the HTTP API and the MCP endpoint share: the tools, prompts and
// resources of a workspace's apps.
//
// It merges the lists of the apps (mergedlists.go), gives tools and prompts the prefix of their app and
// finds the app of a name (toolname.go) or URI (resourceuris.go), applies feature flags and roles
// (docs/api.md 4.6), checks arguments against schemas (validation.go, schemabudget.go), provides the
// service's own system__* tools, publishes data.changed after the call of an agent, and keeps what the
// session of a client subscribes to and logs (session.go).
//
// It does not own connections, processes or the questions of apps (package apps does), nor wire formats
// (packages httpapi and mcphttp do). It is a package of its own so that both endpoints list and allow the
// same.
package tools
