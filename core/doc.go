// Package core holds the domain types of the server.
//
// It owns App and its state transitions, Tool, Caller, Workspace, Event, Secret and the closed list of
// error codes. It has no behaviour beyond them, does no input or output, and imports the standard
// library only, so that every package can import it.
package core
