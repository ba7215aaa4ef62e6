// Package stdio is the transport to an app that runs as a process: MCP's stdio transport, with one
// JSON-RPC message a line.
//
// It reads messages in wire order (Conn.Next), writes them without waiting where the pipe has space
// (writeQueue), and closes the connection of an app that stops reading. Lines that are not messages are
// discarded and counted; when such a line answers a call, the call fails at once.
//
// It does not start the process (package process does) and does not know calls (package link does).
package stdio
