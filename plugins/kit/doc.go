// Package kit is what the conformance kits of all kinds are made of: properties that read as a contract, tried on an
// implementation with generated histories, and reported one by one.
//
// It owns how a property is tried (effort, seed, patience), what a result says, the proxy that breaks the
// connections to a backend, and the search for secrets in what a plugin writes. The properties, and the reference
// model that they compare with, live next to each contract (sessionstore/sessionstoretest and its siblings). It does
// without package testing's T, so that a command can run a kit against any executable.
package kit
