// Package authtest is the conformance kit for auth adapters. It models the contract of package auth.
//
// It contains an OpenID provider on loopback, with random names and faults that can be switched on, and a table of the
// values that tokens are made of. An oracle parses each token independently and knows which results the contract
// allows. The kit's properties compare results with the oracle: for pairs of values in the table, for many people at
// once, and for histories of faults, logins and revocations. An adapter that is not for OpenID providers needs
// Samples. If its author supplies a command that issues tokens, the kit also tries many combinations of their
// fields.
package authtest
