// Package mcphttp serves MCP clients: /mcp (Streamable HTTP) and the OAuth discovery documents, on Fiber.
//
// It owns the gates that every request passes (gates.go, one function) and the single path of a call: post.go
// receives the messages, call.go starts, awaits and answers calls, and methods.go lists the methods. Requests in
// revisions up to 2025-11-25 belong to a session. Those in 2026-07-28 have no session (stateless.go) but take the
// same path.
//
// A session (session.go, question.go) has its in-flight calls, its GET stream and the questions for its client. A
// sessionSet caps the sessions of this process, and a sessionWriter keeps the session store up to date. By means of a
// serverLease, the servers that share a store find out which of them has a session. lookup.go takes sessions over.
//
// Streams are in the subpackage sse. This package does not own tools (package tools), identities and membership
// (access), the rules for Host and Origin (webguard), or the Fiber app and its listener (httpapi). It uses only the
// types and error codes of the MCP SDK. The tests compare it with the SDK's own handler.
package mcphttp
