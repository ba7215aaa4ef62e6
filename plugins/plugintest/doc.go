// Package plugintest helps to test plugins: it serves an implementation over a real gRPC
// connection inside the test process, and runs a conformance kit as subtests.
//
// Run a kit twice, on the implementation itself and over a connection to it: a check that fails only
// over the connection shows an error in the conversion of messages. This package starts no
// executables; `ropewalk plugin test` does.
package plugintest
