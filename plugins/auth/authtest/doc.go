// Package authtest is the conformance kit for auth adapters, a model of what the contract of package auth
// promises.
//
// It contains an OpenID provider on loopback with random names and faults that can be switched on, a table of
// properties that tokens are made of, and an oracle that parses each token independently and knows which
// answers the contract allows. The kit's properties compare answers with the oracle: for all pairs in the
// table, for many people at once, and for histories of faults, logins and revocations. An adapter that is not
// for OpenID providers brings Samples; if its author supplies a command that issues tokens for the kit, it is
// tested with the same table.
package authtest
