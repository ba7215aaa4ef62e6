// Package rawjson checks, searches and edits JSON without decoding it: what passes through the service
// unchanged is looked at once, as bytes, and every byte that is not edited is kept.
//
// It owns one scanner over RFC 8259 that allocates nothing, the limit of nesting (MaxDepth), the check
// for duplicate names, and the only functions that edit an object or an array in place. It does not
// know JSON-RPC or MCP, and it makes no Go values: encoding/json does.
//
// It is a package of its own because both ends of a call (mcphttp and link) read messages that must
// stay as they were written, and because encoding/json takes several passes over them.
package rawjson
