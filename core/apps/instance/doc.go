// Package instance is one running app: a process on this machine, or a connection to a remote server.
//
// It owns how an instance is started (the process with its environment and log, or the connection),
// the MCP handshake with it, why it ended, and how it is ended. It does not decide when to start an
// instance or how many (apps, interact), does not read MCP messages (link), and does not manage
// process trees (process).
package instance
