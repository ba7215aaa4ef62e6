// Package load is a load generator for MCP servers that speak Streamable HTTP. It supports the revisions with
// sessions, and also servers that do not assign a session id.
//
// It has its own client, which writes HTTP/1.1 directly to a connection. The client takes only a few
// microseconds per request, so the figures reflect the server and not the client. It checks only whether a response
// is a result or an error. It does not start servers; package table does.
//
// The clients in the tests are separate: they check everything and are much slower.
package load
