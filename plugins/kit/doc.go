// Package kit is the basis of the conformance kits of all kinds: properties that read like a contract, tried on
// an implementation with generated histories, and reported one by one.
//
// It defines how a property is tried (effort, seed, patience) and what a result contains. It contains the proxy that
// breaks connections to a backend, and the search for secrets in a plugin's output. The properties, and the reference
// models they compare with, are next to each contract (sessionstore/sessionstoretest and its siblings). It does not use
// testing.T, so that a command can run a kit against any executable.
package kit
