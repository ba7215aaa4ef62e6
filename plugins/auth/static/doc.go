// Package static is the auth adapter for tokens in a file, for tests and for machines without a network.
//
// It defines the file format, rereads the file when it changes, looks up tokens, and reports removed ones as
// revoked. There is no provider, so it has no metadata and no browser login.
package static
