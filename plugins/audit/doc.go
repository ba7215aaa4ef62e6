// Package audit is the contract of an audit sink, a plugin that keeps what a server records: who did what,
// and how it ended.
//
// It owns the Sink interface, its records and errors, and the conversion to gRPC messages. The server
// numbers the records, waits for the answer of each write and repeats what was not acknowledged. The
// built-in sinks are in the folders beneath; audittest is the conformance kit that every sink must pass.
package audit
