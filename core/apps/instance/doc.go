// Package instance represents one running app: a process on this machine, or a connection to a remote server.
//
// It owns how an instance is started (the process with its environment and log, or the connection), the MCP handshake,
// how the instance is stopped, and why it ended. It does not decide when to start instances or how many (apps,
// interact), does not interpret MCP messages (link), and does not manage process trees (process).
package instance
