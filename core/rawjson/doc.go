// Package rawjson checks, searches and edits JSON without decoding it. JSON that passes through the server unchanged is
// examined once, as bytes, and every byte that is not edited is kept.
//
// It has a single scanner for RFC 8259 that allocates nothing, the nesting limit (MaxDepth), the check for
// duplicate names, and the only functions that edit an object or an array in place. It does not know JSON-RPC
// or MCP, and it does not produce Go values: encoding/json does.
//
// It is a separate package because both ends of a call (mcphttp and link) read messages that must remain as they were
// written, and because encoding/json takes several passes over them.
package rawjson
