// Package static is the auth adapter whose tokens stand in a file: for tests and for machines
// without a network.
//
// It owns the file's form, its re-reading when it changes, the lookup, and the revocation of tokens that
// were removed. There is no provider behind it, so it has no metadata and no browser login.
package static
