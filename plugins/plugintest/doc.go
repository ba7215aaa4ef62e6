// Package plugintest helps to test plugins: it serves an implementation over a real gRPC
// connection inside the test process, and runs a conformance kit as subtests.
//
// A kit is worth running twice, on the implementation itself and on the other end of a connection
// to it: what only one of them passes is a fault of the wire. Starting executables is the
// business of `ropewalk plugin test`, not of this package.
package plugintest
