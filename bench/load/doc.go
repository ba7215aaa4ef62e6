// Package load is a load generator for MCP servers that speak Streamable HTTP (revisions with
// sessions; a server that hands out no session id is spoken to without).
//
// It owns the client: HTTP/1.1 on bare connections, so that its own cost per request stays a few
// microseconds and the figures are the server's. It does not judge answers beyond telling a result
// from an error, and it starts no servers: package table does.
//
// It is apart from the tests' clients because those check everything, and cost accordingly.
package load
