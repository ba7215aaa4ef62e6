// Package tools is the hall both doors lead to: one namespace of tools per workspace.
//
// It owns the names (server__tool), the filters of spec 4.10 rule 4 (feature flags, roles), the
// check of arguments against a tool's schema, the service's own system__* tools, and data.changed
// after an agent's call. It does not own connections or processes (apps does), nor wire formats of
// a door. It is apart so that the two doors cannot differ in what they show and allow.
package tools
