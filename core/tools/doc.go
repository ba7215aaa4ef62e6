// Package tools is the hall both doors lead to: one namespace of tools, prompts and resources per
// workspace.
//
// It owns the names (server__tool, server__prompt, ropewalk://server/uri where two apps share a
// URI) and the way back from them to the app, the filters of spec 4.10 rule 4 (feature flags,
// roles), the check of arguments against a tool's schema, the service's own system__* tools,
// data.changed after an agent's call, and what a client's session subscribed to and wants logged.
// It does not own connections, processes or questions of apps (apps does), nor wire formats of a
// door. It is apart so that the two doors cannot differ in what they show and allow.
package tools
