// Package plugintest helps to test plugins: it serves an implementation over a real gRPC
// connection inside the test process, and runs a conformance kit as subtests.
//
// Run a kit twice, on the implementation itself and over a connection to it: a check that fails only
// over the connection shows an error in the conversion of messages.
//
// Main and Start run a plugin's own main in a process of its own, so that a test needs to know nothing else
// of it. This package starts no other executables; `ropewalk plugin test` does.
package plugintest
