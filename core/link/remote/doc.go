// Package remote is the transport to an app on a remote server: MCP's Streamable HTTP, or the HTTP+SSE
// transport of 2024-11-05.
//
// It checks the configured address, credentials and headers (credentials.go), refuses redirects to other origins and
// forbidden addresses, and sends requests (roundtripper.go). It bounds and checks responses (response.go,
// eventfilter.go, pace.go), and keeps a stream open for the messages that a server sends unprompted (serverstream.go).
//
// The MCP SDK's client transports read and write the messages themselves; this package is the http.RoundTripper
// underneath them. It does not track calls (package link does).
package remote
