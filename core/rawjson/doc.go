// Package rawjson checks JSON and finds its parts without decoding it: what passes through the
// service unchanged is looked at once, as bytes.
//
// It owns one scanner over RFC 8259 that allocates nothing. It does not know JSON-RPC or MCP, and
// it makes no Go values: encoding/json does.
//
// It is apart because both ends of a call's way (mcphttp and link) read messages that must stay as
// they were written, and because encoding/json takes several passes and several times as long.
package rawjson
