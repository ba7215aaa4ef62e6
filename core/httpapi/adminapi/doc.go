// Package adminapi serves the routes of people, workspaces, API keys, models, registries, the audit trail and the configuration.
//
// Most of them run one of the server's own tools (package tools), so that a program may do through /v1
// what a model may do through system__<tool>, under the same rights. Package httpapi owns the route table.
package adminapi
