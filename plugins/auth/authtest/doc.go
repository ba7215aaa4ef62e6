// Package authtest is the conformance kit of auth adapters, a model of what the contract of package auth promises.
//
// It owns an OpenID provider on loopback with random names and faults to switch on, a table of properties that tokens
// are made of, and an oracle that reads each token anew and knows which answers the contract allows. The properties of
// the kit compare answers with the oracle: for all pairs of the table, for many people at once, and for histories of
// faults, logins and revocations. An adapter that is not one of OpenID providers brings Samples; a command that issues
// tokens for the kit gets it the same table.
package authtest
