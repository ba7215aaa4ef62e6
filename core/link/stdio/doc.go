// Package stdio is the transport to an app that runs as a process: MCP's stdio transport, with one JSON-RPC
// message per line.
//
// It reads messages in wire order (Conn.Next), writes them without waiting while the pipe has space (writeQueue), and
// closes the connection if the app stops reading. Lines that are not messages are discarded and counted. If such a line
// is the response to a call, the call fails immediately.
//
// It does not start the process (package process does) and does not track calls (package link does).
package stdio
