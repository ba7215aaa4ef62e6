// Package mcphttp serves MCP clients: /mcp (Streamable HTTP) and the discovery documents of OAuth, on
// Fiber.
//
// It owns the gates that every request passes (gates.go, one function), and the one way of a call:
// post.go reads the messages, call.go starts, waits for and answers calls, and methods.go lists the
// methods. Requests of the revisions up to 2025-11-25 belong to a session; those of 2026-07-28 have none
// (stateless.go) and take the same way.
//
// Sessions, the reading of messages and the streams are the sub-packages session, message and sse. It
// does not own tools (tools does), identities and membership (access), which Host and Origin are served
// (webguard), or the Fiber app and its listener (httpapi). The MCP SDK gives it types and codes only;
// the SDK's own handler is the reference that the tests compare with.
package mcphttp
