// Package audit is the contract for audit sinks, plugins that keep what a server records: who did what, and with what
// result.
//
// It defines the Sink interface, its records and errors, and the conversion to gRPC messages. The server numbers the
// records, waits for the response to each write and repeats records that were not acknowledged. The built-in sinks are
// in subdirectories; audittest is the conformance kit that every sink must pass.
package audit
