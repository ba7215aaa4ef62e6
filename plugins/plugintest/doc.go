// Package plugintest helps to test plugins. It serves an implementation over a real gRPC connection inside the test
// process, and runs a conformance kit as subtests.
//
// Run a kit twice, on the implementation itself and over a connection to it. A check that fails only over the
// connection indicates an error in the conversion of messages.
//
// Main and Start run a plugin's own main in a separate process, so that a test needs to know nothing else about it.
// This package starts no other executables; `ropewalk plugin test` does.
package plugintest
