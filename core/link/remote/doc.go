// Package remote is the transport to an app that is a server elsewhere: MCP's Streamable HTTP, or the
// HTTP+SSE of 2024-11-05.
//
// It checks the configured address, credentials and headers (credentials.go), refuses redirects to other
// origins (redirect.go) and addresses that must not be reached (dialguard.go), sends requests
// (roundtripper.go), bounds and checks responses (response.go, eventfilter.go, pace.go), and keeps the stream
// open on which a server sends by itself (serverstream.go).
//
// The messages themselves are read and written by the MCP SDK's client transports, below which this
// package is the http.RoundTripper. It does not know calls (package link does).
package remote
