// Package mcphttp is the door for MCP clients: /mcp (Streamable HTTP) and the two discovery
// documents of spec 4.11, on Fiber.
//
// It owns the gates every request passes (gates.go, one function), the sessions with their cap and
// idle time, the transport between an HTTP request and the MCP SDK's server, and the event streams
// with the journal a broken one is resumed from. A request says which revision it speaks: those up
// to 2025-11-25 have sessions, in which apps' questions go out (questions.go); 2026-07-28 has none,
// and is answered request by request (modern.go, run.go).
//
// It does not own tools (tools does), identities and membership (access), the memory of sessions
// across processes (a sessionstore.Store), or the Fiber app and its listener (httpapi).
//
// It is apart from httpapi because it speaks JSON-RPC over long-lived streams: its transport is
// its own, since neither the SDK's handler behind an adaptor nor a second HTTP server passed the
// tests, and the SDK's handler serves as an oracle in the tests instead.
package mcphttp
