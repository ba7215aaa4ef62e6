// Package message reads the JSON-RPC messages that clients POST to /mcp, as strictly as is needed so
// that no two readers could take a body for different ones.
//
// A message is taken apart once; everything behind this package works on its parts. It does not know
// sessions or methods: whether a request makes sense is decided by mcphttp.
package message
