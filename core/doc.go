// Package core is the domain: the words every room of the server speaks.
//
// It owns App and its legal life-cycle transitions, Tool, Caller, Workspace, Event, Secret and
// the closed list of error codes. It owns no behaviour beyond them, does no input or output, and
// imports the standard library only, so that any room can import it and it imports none.
package core
