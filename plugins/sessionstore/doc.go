// Package sessionstore is the contract of a session store, a plugin that records which MCP sessions
// exist. With a shared backend, another server of the deployment, or the same one after a restart, finds
// a session that it did not open itself.
//
// It owns the Store interface, its records and errors, and the conversion to gRPC messages. The open
// connections of a session stay in the server's process. The built-in stores are in subdirectories;
// sessionstoretest is the conformance kit that every store must pass.
package sessionstore
