// Package headerparam is about arguments of tools that HTTP requests of MCP 2026-07-28 repeat in headers, for
// those who route them (basic/transports, custom headers from tool parameters).
//
// It owns which arguments a schema marks with x-mcp-header (FromSchema), the headers of a call (Header), the
// comparison of headers with a body (Agrees), and the encoding of values (Encode, Decode). It sends and
// refuses nothing: link sends the headers, mcphttp checks those of clients.
package headerparam
