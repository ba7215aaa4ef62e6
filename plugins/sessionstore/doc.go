// Package sessionstore is the contract of a session store: where the server remembers which MCP
// sessions exist, so that another replica, or the same one after a restart, can tell a session
// that lives elsewhere from one that never was.
//
// It owns the Store interface, its records and errors, and their gRPC wire. It does not own the
// live transports (those stay in the server's process), nor any one backend: the folders beneath
// hold those, and sessionstoretest holds the conformance kit that each of them must pass.
package sessionstore
