// Package core defines the domain types of the server.
//
// It owns App and its state transitions, Tool, Caller, Workspace, Event, Secret and the closed list of
// error codes. It does no I/O and imports only the standard library, so that every package can import it.
package core
