// Package kit is what the conformance kits of all kinds are made of: named checks that read as a
// contract, run against an implementation, and reported one by one.
//
// It owns the form of a check and running a list of them; the checks themselves live beside each
// contract (sessionstore/sessionstoretest and its siblings). It is apart from package testing, so
// that a command can run a kit against any executable and print a table.
package kit
